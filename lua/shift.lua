-- Shift (move): takes members out of delayed; they go to another queue's delayed and keep their time, or to a list.
--
-- KEYS    1 delayed  2 delayed of the target, or a list  [3 notify of the target, with a list that has one]
-- ARGV    1 'delayed' or 'list'  2.. pairs member, text to put in the target
-- Returns pairs position, 'gone' or 'twin' for those that were not done: gone = it is not in delayed any more; twin = the
--         target's delayed holds the same text already, which keeps its time, so the member stays where it is.
-- Promise one atomic step: a member is in delayed or its text in the target. Safe to send again.
-- Cost    O(pairs * log N).
-- @include expect variadic
local delayed, target, bell, kind = KEYS[1], KEYS[2], KEYS[3], ARGV[1]
local wrong = expect(delayed, 'zset') or expect(target, kind == 'list' and 'list' or 'zset') or bell and expect(bell, 'list')
if wrong then
  return wrong
end
local seen, going, waiting, texts, reply = {}, {}, {}, {}, {}
for at = 2, #ARGV, 2 do
  local member, text = ARGV[at], ARGV[at + 1]
  local score = not seen[member] and redis.call('ZSCORE', delayed, member)
  local why = nil
  if not score then
    why = 'gone'
  elseif kind == 'delayed' and (waiting[text] or redis.call('ZSCORE', target, text)) then
    why = 'twin'
  end
  if why then
    reply[#reply + 1] = at / 2
    reply[#reply + 1] = why
  else
    seen[member], waiting[text] = true, true
    going[#going + 1] = member
    texts[#texts + 1] = kind == 'list' and text or score
    if kind ~= 'list' then
      texts[#texts + 1] = text
    end
  end
end
variadic('ZREM', delayed, going)
if kind == 'list' then
  variadic('RPUSH', target, texts)
else
  variadic('ZADD', target, texts)
end
if bell then
  tokens(bell, #going)
end
return reply
