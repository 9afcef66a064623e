% Prolog: arithmetic, sorting.
leaf(0, X, X) :- !.
leaf(N, X, Y) :- Z is (X * 77 + N) /\ 65535, M is N - 1, leaf(M, Z, Y).
sorting(First) :- findall(X, (between(1, 20000, I), X is I * 7919 mod 3001), Items), msort(Items, [First|_]).
work(0) :- !.
work(N) :- leaf(60000, 1, _), sorting(_), M is N - 1, work(M).
:- initialization((work(30), halt)).
