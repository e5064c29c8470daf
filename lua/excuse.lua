-- Excuse (B21), both layouts: says that leases will run out although their worker lives, because its handler failed and
-- the message is left (L6, Z5). Their end is then not counted as a lost worker.
--
-- KEYS    1 deadlines or reserved
-- ARGV    members
-- Returns pairs position, 'late' for the members whose lease is gone.
-- Promise a score that is a whole second goes back by half of one. Clocks are compared in whole seconds (L3, Z2), so the
--         lease ends when it would have ended, and a renewal leaves it alone. Nothing else is written: there is no mark that
--         could stay behind. The first write is a removal that removes nothing, as in renew. Safe to send again.
-- Cost    O(n * log N).
-- @include expect variadic
local leases = KEYS[1]
local wrong = expect(leases, 'zset')
if wrong then
  return wrong
end
local held, excused, reply = scores(leases, ARGV, 1, #ARGV), {}, {}
for i = 1, #held do
  local score = tonumber(held[i] or 0)
  if not held[i] then
    reply[#reply + 1] = i
    reply[#reply + 1] = 'late'
  elseif score and score % 1 == 0 then
    excused[#excused + 1] = string.format('%.1f', score - 0.5)
    excused[#excused + 1] = ARGV[i]
  end
end
if #excused > 0 then
  redis.call('ZREM', leases, '-')
  variadic('ZADD', leases, excused)
end
return reply
