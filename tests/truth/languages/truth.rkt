#lang racket/base
;; Racket: arithmetic, sorting.
(define (now) (exact->inexact (current-process-milliseconds)))
(define (leaf) (let loop ([i 0] [x 1]) (if (< i 100000) (loop (+ i 1) (bitwise-and (+ (* x 77) i) 65535)) x)))
(define (sorting) (sort (for/list ([i (in-range 2000)]) (modulo (* i 7919) 3001)) <))
(define (spend ms call) (let ([start (now)]) (let loop ([at start]) (if (< (- at start) ms) (begin (call) (loop (now))) (- at start)))))
(define (main)
  (let loop ([count 0] [first 0] [second 0])
    (if (< count 8)
        (let* ([a (spend 80 leaf)] [b (spend 50 sorting)]) (loop (+ count 1) (+ first a) (+ second b)))
        (printf "leaf ~a\nsorting ~a\n" (/ (* 100.0 first) (+ first second)) (/ (* 100.0 second) (+ first second))))))
(main)
