-- Reserve (Z2, Z3): promotes what is due, then moves messages from the head of ready to reserved, with
-- attempts raised by one in the text.
--
-- KEYS    1 ready  2 delayed  3 reserved  4 notify  5 paused  6 dead letters  [7 notify of dead letters]
--         [last recoveries]
-- ARGV    1 now override or ''  2 retryAfter seconds, '' = never  3 most messages  4 byte budget
--         5 first chunk  6 most members to promote, 0 = none  7 notify tokens the waiter took
--         [8 lost workers a message may have  9 messages in their last chance to take, 0 or 1  10 seconds to keep recoveries]
-- Returns status ('ok' or 'paused'), server seconds, promoted, left in ready, then three counts m, e, p and
--         m reserved members in order, e notes 'position at length old' for members whose attempts were not
--         simply raised by one at the very end (old text of the attempts, which stood at byte at, from 1;
--         length bytes stand there now), p raw bodies that were put in the dead letters instead; with recoveries,
--         then what tell appends.
-- Promise one atomic step; every byte but the attempts stays. A body that cannot be edited safely is never
--         reserved and never raises an error. Equal members are kept apart by raising attempts again.
-- Cost    O(messages * log N) plus promoting; a body that is not canonical costs a walk over it.
-- @include expect clock variadic pop raise recoveries lost migrate vet
local ready, delayed, reserved, notify, dead = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[6]
local recoveries = ARGV[8] and KEYS[#KEYS]
local bell = #KEYS > (recoveries and 7 or 6) and KEYS[7]
local wrong = expect(ready, 'list') or expect(delayed, 'zset') or expect(reserved, 'zset')
  or expect(notify, 'list') or expect(dead, 'list') or bell and expect(bell, 'list')
  or recoveries and expect(recoveries, 'hash')
if wrong then
  return wrong
end
local now = clock(ARGV[1])
local moved = promote(ready, delayed, reserved, notify, now, tonumber(ARGV[6]), ARGV[2] ~= '', recoveries, ARGV[10])
if redis.call('EXISTS', KEYS[5]) == 1 then
  return {'paused', now, moved, redis.call('LLEN', ready), 0, 0, 0}
end

local known = recoveries and counted(recoveries)
local bodies, count = pop(ready, tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5]))
local workers, back
if recoveries then
  bodies, count, workers, back = vet(ready, recoveries, known, bodies, count, tonumber(ARGV[8]), tonumber(ARGV[9]))
end
local left = redis.call('LLEN', ready)
local members, edits = {}, {}
local poison, m = {}, 0
for i = 1, count do
  local body = bodies[i]
  local first, last, before, number, canonical = raise(body)
  if first then
    m = m + 1
    members[m] = splice(body, first, last, before .. spell(number))
    edits[m] = {body, first, last, before, number, canonical, workers and workers[i] or 0}
  else
    poison[#poison + 1] = body
  end
end

-- A twin is a member that is reserved already, here or by an earlier call; ZADD would merge the two. It gets the next
-- number that is free. taken remembers this call's members, and tried, for a text and a number that is not free, where
-- to go on, so that many equal bodies in one call cost one step each. Beyond 2^53-1 adding one changes nothing: such
-- a twin cannot be raised safely.
local held, taken, tried = scores(reserved, members, 1, m), {}, {}
local spoiled
for i = 1, m do
  if held[i] or taken[members[i]] then
    local edit = edits[i]
    local body, first, last, before, number = edit[1], edit[2], edit[3], edit[4], edit[5]
    local text = splice(body, first, last, '\0')
    tried[text] = tried[text] or {}
    local on, path, member = tried[text], {}, nil
    repeat
      path[#path + 1] = number
      number = on[number] or number + 1
      member = splice(body, first, last, before .. spell(number))
    until number > 9007199254740991
      or not on[number] and not taken[member] and not redis.call('ZSCORE', reserved, member)
    for k = 1, #path do
      on[path[k]] = number
    end
    members[i] = member
    edit[5], edit[6] = number, false
    spoiled = spoiled or number > 9007199254740991
  end
  taken[members[i]] = true
end
if spoiled then
  local kept = 0
  for i = 1, m do
    if edits[i][5] > 9007199254740991 then
      poison[#poison + 1] = edits[i][1]
    else
      kept = kept + 1
      members[kept], edits[kept] = members[i], edits[i]
    end
  end
  m = kept
end

local reply = {'ok', now, moved, left, m, 0, #poison}
local scored = {}
if m > 0 then
  local score = expiry(now, ARGV[2])
  for i = 1, m do
    scored[2 * i - 1] = score
    scored[2 * i] = members[i]
    reply[7 + i] = members[i]
  end
  variadic('ZADD', reserved, scored)
end
local notes = 0
for i = 1, m do
  local edit = edits[i]
  if not edit[6] then
    notes = notes + 1
    local body, first, last = edit[1], edit[2], edit[3]
    local length = #members[i] - (#body - last) - first + 1
    reply[7 + m + notes] = i .. ' ' .. first .. ' ' .. length .. ' ' .. string.sub(body, first, last)
  end
end
reply[6] = notes
for i = 1, #poison do
  reply[7 + m + notes + i] = poison[i]
end
variadic('RPUSH', dead, poison)
if bell then
  tokens(bell, #poison)
end
if recoveries then
  local reserves = {}
  for i = 1, m do
    reserves[i] = edits[i][7]
  end
  tell(reply, reserves, known, back)
end

-- One token less for each message taken, and never more tokens than messages: a surplus would wake waiters
-- for nothing (B41).
if left == 0 then
  if redis.call('EXISTS', notify) == 1 then
    redis.call('DEL', notify)
  end
else
  local spend = count - tonumber(ARGV[7])
  if spend > 0 then
    redis.call('LPOP', notify, spend)
  end
  if redis.call('LLEN', notify) > left then
    redis.call('LTRIM', notify, 0, left - 1)
  end
end
return reply
