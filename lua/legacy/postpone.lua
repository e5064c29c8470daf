-- Postpone (Z7, as far as lists can): leases end after a time of their own, and their messages then come back uncharged by
-- the sweep (L3).
--
-- KEYS    1 deadlines
-- ARGV    1 now override or ''  then pairs deadline member, delay in seconds
-- Returns pairs position, 'late' for the members whose lease is gone.
-- Promise the value stays in processing with its deadline; there is no moment at which it is nowhere. The score ends at
--         half a second, as in excuse.lua: the worker lives (B21), and a renewal that comes after it leaves it alone. The
--         first write is a removal that removes nothing, as in renew. Safe to send again: the time begins anew.
-- Cost    O(n * log N).
-- @include expect clock variadic
local deadlines = KEYS[1]
local wrong = expect(deadlines, 'zset')
if wrong then
  return wrong
end
local members = {}
for at = 2, #ARGV, 2 do
  members[#members + 1] = ARGV[at]
end
local now, held, scored, reply = clock(ARGV[1]), scores(deadlines, members, 1, #members), {}, {}
for i = 1, #members do
  if held[i] then
    scored[#scored + 1] = string.format('%.1f', now + tonumber(ARGV[2 * i + 1]) - 0.5)
    scored[#scored + 1] = members[i]
  else
    reply[#reply + 1] = i
    reply[#reply + 1] = 'late'
  end
end
if #scored > 0 then
  redis.call('ZREM', deadlines, '-')
  variadic('ZADD', deadlines, scored)
end
return reply
