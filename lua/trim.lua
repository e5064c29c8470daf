-- Trim (B42, D1): discards the oldest dead letters, those at the head, that are beyond a limit.
--
-- KEYS    1 dead letters  [2 notify of dead letters]
-- ARGV    1 now override or ''  2 most records, '' = any number  3 most seconds since failed_at, '' = any age
--         4 most bytes of memory, '' = any size
-- Returns how many were discarded, and 1 when there may be more to discard.
-- Promise never another key, and never more notify tokens than dead letters. A record without a failed_at is as old as
--         the next one behind it that has one, since records are added at the tail; where there is none in what is looked
--         at, age keeps it.
-- Cost    at most 1,000 records a call; for age and bytes it looks at no more of them than it discards, and one chunk;
--         MEMORY USAGE of the list, which counts its nodes and does not look at records.
-- @include expect clock
local dead, bell = KEYS[1], KEYS[2]
local wrong = expect(dead, 'list') or bell and expect(bell, 'list')
if wrong then
  return wrong
end

-- walk(from, most, visit): shows visit the index of records from an index on, and the record, until it returns true. The
-- chunks grow from one record on and stop after a megabyte: records can be large. Returns whether most or that ended it.
local function walk(from, most, visit)
  local size, seen, bytes = 1, 0, 0
  while seen < most and bytes < 1048576 do
    local some = redis.call('LRANGE', dead, from + seen, from + seen + math.min(size, most - seen) - 1)
    if #some == 0 then
      return false
    end
    for i = 1, #some do
      if visit(from + seen + i - 1, some[i]) then
        return false
      end
      bytes = bytes + #some[i]
    end
    seen, size = seen + #some, math.min(size * 2, 64)
  end
  return true
end

-- failed(record): the last failed_at of a record in milliseconds. The record's own is the last, as dead_letter is the
-- last key (D2).
local function failed(record)
  local at, found = 1, nil
  while true do
    local _, stop, digits = string.find(record, '"failed_at"%s*:%s*(%d+)', at)
    if not stop then
      return tonumber(found)
    end
    at, found = stop + 1, digits
  end
end

-- used(): the memory of the list. Read before the first write too, since it may be forbidden. Other servers than
-- Redis may not know SAMPLES, where 0 means all nodes.
local function used()
  local bytes = redis.pcall('MEMORY', 'USAGE', dead, 'SAMPLES', 0)
  if type(bytes) == 'table' then
    bytes = redis.call('MEMORY', 'USAGE', dead)
  end
  return bytes or 0
end

local length, drop = redis.call('LLEN', dead), 0
local large = ARGV[4] ~= '' and used() > tonumber(ARGV[4])
if ARGV[2] ~= '' then
  drop = math.min(math.max(length - tonumber(ARGV[2]), 0), 1000)
end
local full = drop == 1000
if ARGV[3] ~= '' and not full then
  local now, before = clock(ARGV[1]), drop
  local oldest = (now - tonumber(ARGV[3])) * 1000
  local ended = walk(drop, 1000 - drop, function(index, record)
    local at = failed(record)
    if at and at < oldest then
      drop = index + 1
    end
    return at and at >= oldest and at < (now + 1) * 1000
  end)
  full = ended and drop > before
end
if drop > 0 then
  redis.call('LTRIM', dead, drop, -1)
end
if large and drop < 1000 and drop < length then
  local excess, first = used() - tonumber(ARGV[4]), 0
  if excess > 0 then
    walk(0, 1000 - drop, function(index, record)
      excess, first = excess - #record, index + 1
      return excess <= 0
    end)
    redis.call('LTRIM', dead, first, -1)
    drop, full = drop + first, true
  end
end
if drop > 0 and bell then
  local left = redis.call('LLEN', dead)
  if left == 0 then
    redis.call('DEL', bell)
  elseif redis.call('LLEN', bell) > left then
    redis.call('LTRIM', bell, 0, left - 1)
  end
end
return {drop, full and 1 or 0}
