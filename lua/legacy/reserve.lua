-- Reserve (L2, L3, L5): sweeps expired leases, then moves messages from the head of ready to the tail of
-- processing and gives each a deadline.
--
-- KEYS    1 ready  2 processing  3 deadlines  4 paused  [5 recoveries]
-- ARGV    1 now override or ''  2 retryAfter seconds, '' = never  3 most messages  4 byte budget
--         5 first chunk  6 token prefix, 24 hex  7 most deadlines to sweep, 0 = none
--         [8 lost workers a message may have  9 messages in their last chance to take, 0 or 1  10 seconds to keep recoveries]
-- Returns status ('ok' or 'paused'), server seconds, deadlines swept, left in ready, then the deadline
--         members '<32 hex>:<value>' in reservation order; with recoveries, then what tell appends.
-- Promise one atomic step: a value is in ready, or in processing with its deadline; never in neither.
--         Nothing is moved when a key has the wrong type.
-- Cost    O(messages * log N) plus the sweep.
-- @include expect clock variadic pop strike remove carried recoveries lost sweep vet
local ready, processing, deadlines, recoveries = KEYS[1], KEYS[2], KEYS[3], KEYS[5]
local wrong = expect(ready, 'list') or expect(processing, 'list') or expect(deadlines, 'zset')
  or recoveries and expect(recoveries, 'hash')
if wrong then
  return wrong
end
local now = clock(ARGV[1])
local swept = 0
if ARGV[7] ~= '0' then
  swept = sweep(processing, deadlines, ready, now, ARGV[7], recoveries, ARGV[10])
end
if redis.call('EXISTS', KEYS[4]) == 1 then
  return {'paused', now, swept, redis.call('LLEN', ready)}
end

local known = recoveries and counted(recoveries)
local values, count = pop(ready, tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5]))
local workers, back
if recoveries then
  values, count, workers, back = vet(ready, recoveries, known, values, count, tonumber(ARGV[8]), tonumber(ARGV[9]))
end
local reply = {'ok', now, swept, 0}
if count > 0 then
  local score, prefix, scored = expiry(now, ARGV[2]), ARGV[6], {}
  for i = 1, count do
    local member = prefix .. string.format('%08x:', i) .. values[i]
    scored[2 * i - 1] = score
    scored[2 * i] = member
    reply[4 + i] = member
  end
  variadic('RPUSH', processing, values)
  variadic('ZADD', deadlines, scored)
end
reply[4] = redis.call('LLEN', ready)
if recoveries then
  tell(reply, workers, known, back)
end
return reply
