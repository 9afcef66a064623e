%% Erlang: arithmetic, sorting, and a deep recursion that isn't a tail call.
-module(truth).
-export([main/0, leaf/2, sorting/0, deep/1, bottom/2]).

now_ms() -> {Time, _} = statistics(runtime), Time.

spend(Ms, Call) -> Start = now_ms(), spend(Ms, Call, Start, Start).
spend(Ms, Call, Start, Now) when Now - Start < Ms -> Call(), spend(Ms, Call, Start, now_ms());
spend(_, _, Start, Now) -> Now - Start.

leaf(0, X) -> X;
leaf(N, X) -> leaf(N - 1, (X * 77 + N) band 65535).

sorting() -> lists:sort([(I * 7919) rem 3001 || I <- lists:seq(1, 3000)]).

bottom(0, X) -> X;
bottom(N, X) -> bottom(N - 1, (X * 77 + N) band 65535).

deep(0) -> bottom(200000, 1);
deep(N) -> 1 + deep(N - 1).

main() ->
    Parts = [{leaf, 120, fun() -> leaf(200000, 1) end},
             {sorting, 80, fun() -> sorting() end},
             {deep, 60, fun() -> deep(50) end}],
    Rounds = lists:foldl(fun(_, Sums) ->
        [{Name, Ms, Call, Sum + spend(Ms, Call)} || {Name, Ms, Call, Sum} <- Sums] end,
        [{Name, Ms, Call, 0} || {Name, Ms, Call} <- Parts], lists:seq(1, 4)),
    Total = lists:sum([Sum || {_, _, _, Sum} <- Rounds]),
    [io:format("~p ~.2f~n", [Name, 100.0 * Sum / Total]) || {Name, _, _, Sum} <- Rounds],
    halt().
