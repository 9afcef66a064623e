# Perl: arithmetic, sorting.
use strict;

sub leaf { my $x = 1; $x = ($x * 77 + $_) & 65535 for 1 .. 50000; $x }
sub sorting { my @words = sort { $a <=> $b } map { $_ * 7919 % 3001 } 1 .. 2000; $words[5] }
sub now { my ($user, $system) = times; $user + $system }
sub spend { my ($seconds, $call) = @_; my $start = now(); my $at = $start; while ($at - $start < $seconds) { $call->(); $at = now() } $at - $start }

my ($first, $second) = (0, 0);
for (1 .. 8) { $first += spend(0.08, \&leaf); $second += spend(0.05, \&sorting) }
printf "leaf %.2f\nsorting %.2f\n", 100 * $first / ($first + $second), 100 * $second / ($first + $second);
