-- ranks(processing, deadlines, first, last): where the values of the members ARGV[first..last] should stand in
-- processing. Returns the index of the first when they stand close together, else an index for each, by position
-- from 1, false for a member that is gone. Reads only, and must run before the members are removed.
--
-- Values enter processing in the order in which their members enter deadlines, whose scores are whole seconds
-- and whose members begin with the time of the call (L2): so the rank of a member, which Redis finds in
-- O(log N), is the index of its value. Renewals, other clocks and orphans disturb that: it is a guess.
local function ranks(processing, deadlines, first, last)
  local n = last - first + 1
  if n < 1 then
    return 0
  end
  local lowest = redis.call('ZRANK', deadlines, ARGV[first])
  local highest = n > 1 and redis.call('ZRANK', deadlines, ARGV[last]) or lowest
  if lowest and highest and highest >= lowest and highest - lowest < 2 * n or redis.call('LLEN', processing) < 512 then
    return lowest or 0
  end
  local all = {}
  for i = 1, n do
    all[i] = redis.call('ZRANK', deadlines, ARGV[first + i - 1])
  end
  return nil, all
end
