-- Settle (Z4, Z5, Z7, D3): ends reservations. All of them leave reserved; some have one more thing done.
--
-- KEYS    1 reserved  2 delayed  3 dead letters  [4 notify of dead letters]
-- ARGV    1 now override or ''  2 n  3..n+2 reserved members, then a group of four for each that is not a
--         plain ack: position from 1, 'release', 'return' or 'dead', delay in seconds, text
--         release: the member itself goes to delayed; return: the text does (uncharged); dead: the text
--         goes to the dead letters
-- Returns pairs position, 'late' or 'left' for those that were not done: late = no longer reserved, left =
--         delayed holds the same text already, so the reservation stays and its lease brings it back.
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

-- What is late blocks nobody, so who is held is asked before.
local blocked, coming, present = {}, {}, delays and scores(reserved, ARGV, 3, n + 2)
for at = n + 3, #ARGV, 4 do
  local i = tonumber(ARGV[at])
  if ARGV[at + 1] ~= 'dead' and present[i] then
    local text = ARGV[at + 1] == 'release' and ARGV[2 + i] or ARGV[at + 3]
    if coming[text] or redis.call('ZSCORE', delayed, text) then
      blocked[i] = true
    end
    coming[text] = true
  end
end
local held = gate(reserved, ARGV, 3, n + 2, blocked)
local now, waiting, buried = delays and clock(ARGV[1]), {}, {}
for at = n + 3, #ARGV, 4 do
  local i, op = tonumber(ARGV[at]), ARGV[at + 1]
  if held[i] and not blocked[i] then
    if op == 'dead' then
      buried[#buried + 1] = ARGV[at + 3]
    else
      waiting[#waiting + 1] = expiry(now, ARGV[at + 2])
      waiting[#waiting + 1] = op == 'release' and ARGV[2 + i] or ARGV[at + 3]
    end
  end
end
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
  elseif blocked[i] then
    reply[#reply + 1] = i
    reply[#reply + 1] = 'left'
  end
end
return reply
