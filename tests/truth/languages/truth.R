# R: byte code, BLAS, sorting.
spend <- function(ms, call) {
  start <- sum(proc.time()[1:2]); now <- start
  while (now - start < ms / 1000) { call(); now <- sum(proc.time()[1:2]) }
  now - start
}
leaf <- function() { x <- 1; for (i in 1:50000) x <- (x * 77 + i) %% 4294967296; x }
multiplying <- function() { a <- matrix(runif(40000), 200); sum(a %*% a) }
sorting <- function() sort(runif(50000))
parts <- c(leaf = 0, multiplying = 0, sorting = 0)
for (round in 1:4) {
  parts["leaf"] <- parts["leaf"] + spend(100, leaf)
  parts["multiplying"] <- parts["multiplying"] + spend(100, multiplying)
  parts["sorting"] <- parts["sorting"] + spend(100, sorting)
}
for (name in names(parts)) cat(sprintf("%s %.2f\n", name, 100 * parts[[name]] / sum(parts)))
