-- Recall (B03): looks for the messages of a reserve call whose reply was lost, by the call's token.
--
-- KEYS    1 deadlines
-- ARGV    1 now override or ''  2 retryAfter seconds, '' = never  3 the call's token, 24 hex
--         4 whole seconds since the call was sent, rounded up  5 how many seconds clocks may differ
-- Returns the deadline members of the call in reservation order; none when it took nothing, or all of it was swept.
-- Promise reads only, so it may be sent any number of times. The members are still leased to the call: their
--         scores are not touched, so the lease runs from the lost call.
-- Cost    O(log N) small reads for each second in which the call may have been carried out, plus the messages.
-- @include expect clock
local deadlines, token = KEYS[1], ARGV[3]
local wrong = expect(deadlines, 'zset')
if wrong then
  return wrong
end

-- before(member, bound): whether the member stands before the bound. By bytes, as Redis sorts: Lua compares strings
-- by the locale of the server.
local function before(member, bound)
  for i = 1, #bound do
    local have, want = string.byte(member, i), string.byte(bound, i)
    if have ~= want then
      return not have or have < want
    end
  end
  return false
end

-- rank(bound, low, high): the rank of the first member that does not stand before the bound, of those with ranks
-- from low to high - 1, which have one score.
local function rank(bound, low, high)
  while low < high do
    local middle = math.floor((low + high) / 2)
    if before(redis.call('ZRANGE', deadlines, middle, middle)[1], bound) then
      low = middle + 1
    else
      high = middle
    end
  end
  return low
end

-- taken(first, after): the members of the call among those with ranks from first to after - 1, which have one score
-- and so stand in the order of their tokens. 'g' comes after every hex digit.
local function taken(first, after)
  local low = rank(token, first, after)
  local high = rank(token .. 'g', low, after)
  if low == high then
    return {}
  end
  return redis.call('ZRANGE', deadlines, low, high - 1)
end

if ARGV[2] == '' then
  local after = redis.call('ZCARD', deadlines)
  return taken(after - redis.call('ZCOUNT', deadlines, '+inf', '+inf'), after)
end
local newest = clock(ARGV[1]) + tonumber(ARGV[2]) + tonumber(ARGV[5])
local oldest = newest - 2 * tonumber(ARGV[5]) - tonumber(ARGV[4])
while oldest <= newest do
  local found = redis.call('ZRANGEBYSCORE', deadlines, string.format('%.0f', oldest), string.format('%.0f', newest),
    'WITHSCORES', 'LIMIT', 0, 1)[2]
  if not found then
    break
  end
  oldest = math.ceil(tonumber(found))
  local score = string.format('%.0f', oldest)
  local first = redis.call('ZCOUNT', deadlines, '-inf', '(' .. score)
  local members = taken(first, first + redis.call('ZCOUNT', deadlines, score, score))
  if #members > 0 then
    return members
  end
  oldest = oldest + 1
end
return {}
