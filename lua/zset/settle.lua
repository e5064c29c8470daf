-- Settle (Z4, Z5, Z7, D3): ends reservations. All of them leave reserved; some have one more thing done.
--
-- KEYS    1 reserved  2 delayed  3 dead letters  [4 notify of dead letters]
-- ARGV    1 now override or ''  2 n  3..n+2 reserved members, then a group of four for each that is not a
--         plain ack: position from 1, 'release', 'return' or 'dead', delay in seconds, text
--         release: the member itself goes to delayed; return: the text does (uncharged); dead: the text
--         goes to the dead letters
-- Returns pairs position, 'late' or 'left' for those that were not done: late = no longer reserved, or
--         given before in this call; left = delayed holds the same text already, so the reservation stays and
--         its lease brings it back.
-- Promise one atomic step; a late one writes nothing.
-- Cost    O(n * log N).
-- @include expect clock variadic gate
local reserved, delayed, dead = KEYS[1], KEYS[2], KEYS[3]
local n = tonumber(ARGV[2])
local delays, deads = false, false
for at = n + 3, #ARGV, 4 do
  if ARGV[at + 1] == 'dead' then
    deads = true
  else
    delays = true
  end
end
local wrong = expect(reserved, 'zset') or delays and expect(delayed, 'zset')
  or deads and (expect(dead, 'list') or KEYS[4] and expect(KEYS[4], 'list'))
if wrong then
  return wrong
end

-- What stays goes back as it was: the gate tells who is held, and only then is it known who blocks whom.
local held = gate(reserved, ARGV, 3, n + 2)
local now, left, coming = delays and clock(ARGV[1]), {}, {}
local stays, waiting, buried = {}, {}, {}
for at = n + 3, #ARGV, 4 do
  local i, op = tonumber(ARGV[at]), ARGV[at + 1]
  if held[i] and op == 'dead' then
    buried[#buried + 1] = ARGV[at + 3]
  elseif held[i] then
    local text = op == 'release' and ARGV[2 + i] or ARGV[at + 3]
    if coming[text] or redis.call('ZSCORE', delayed, text) then
      left[i] = true
      stays[#stays + 1] = held[i]
      stays[#stays + 1] = ARGV[2 + i]
    else
      coming[text] = true
      waiting[#waiting + 1] = expiry(now, ARGV[at + 2])
      waiting[#waiting + 1] = text
    end
  end
end
variadic('ZADD', reserved, stays)
variadic('ZADD', delayed, waiting)
variadic('RPUSH', dead, buried)
if KEYS[4] then
  tokens(KEYS[4], #buried)
end

local reply = {}
for i = 1, n do
  if not held[i] then
    reply[#reply + 1] = i
    reply[#reply + 1] = 'late'
  elseif left[i] then
    reply[#reply + 1] = i
    reply[#reply + 1] = 'left'
  end
end
return reply
