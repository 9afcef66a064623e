;; Common Lisp, as CLISP and ECL read it: arithmetic, sorting.
(defun leaf () (let ((x 1)) (dotimes (i 60000 x) (setq x (logand (+ (* x 77) i) 65535)))))
(defun sorting () (let (items) (dotimes (i 4000) (push (mod (* i 7919) 3001) items)) (first (sort items #'>))))
(compile 'leaf)
(compile 'sorting)
(let ((end (+ (get-internal-real-time) (* 3 internal-time-units-per-second))))
  (loop while (< (get-internal-real-time) end) do (leaf) (sorting)))
