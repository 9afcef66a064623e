{ Free Pascal: arithmetic, sorting. }
program truth;
uses unixtype, linux;
type call = procedure;
var first, second: double; round: integer; sink: qword; words: array[0..1999] of longint;

function now: double;
var used: timespec;
begin
  clock_gettime(2, @used); { CLOCK_PROCESS_CPUTIME_ID }
  now := used.tv_sec * 1000.0 + used.tv_nsec / 1000000.0;
end;

procedure leaf;
var i: longint; x: qword;
begin
  x := sink;
  for i := 0 to 199999 do x := (x * 77 + qword(i)) and 65535;
  sink := x;
end;

procedure order(low, high: longint);
var i, j, middle, kept: longint;
begin
  i := low; j := high; middle := words[(low + high) div 2];
  repeat
    while words[i] < middle do inc(i);
    while words[j] > middle do dec(j);
    if i <= j then begin kept := words[i]; words[i] := words[j]; words[j] := kept; inc(i); dec(j); end;
  until i > j;
  if low < j then order(low, j);
  if i < high then order(i, high);
end;

procedure sorting;
var i: longint;
begin
  for i := 0 to 1999 do words[i] := i * 7919 mod 3001;
  order(0, 1999);
end;

function spend(ms: double; work: call): double;
var start, at: double;
begin
  start := now; at := start;
  while at - start < ms do begin work(); at := now; end;
  spend := at - start;
end;

begin
  for round := 1 to 8 do begin
    first := first + spend(80, @leaf);
    second := second + spend(50, @sorting);
  end;
  writeln('leaf ', 100 * first / (first + second):0:2);
  writeln('sorting ', 100 * second / (first + second):0:2);
end.
