% Octave: loops, a product of matrices, sorting.
1; % a script, not the file of a function
function x = leaf ()
  x = 1;
  for i = 1:30000
    x = mod (x * 77 + i, 65536);
  end
end
for round = 1:12
  leaf ();
  a = rand (300); b = a * a;
  sort (rand (1, 200000));
end
