-- merge(processing, members, live, start, mark): takes the values of members[live[1..]] out of processing, as far as
-- they stand close together from the index start on, and returns how many. Members come in reservation order, and so
-- do the values in the list. So a window of the list is walked beside the members, then the next one, as long as at
-- least half of each matches. A value is compared in place, because Redis's Lua hashes every byte of every string
-- it makes, which is what a long body costs most.
--
-- At the head, or near it, what stays is taken off with the rest and put back. Farther away that would cost more
-- than marking what goes (see strike).
local function merge(processing, members, live, start, mark)
  local find, total, done, marked = string.find, #live, 0, 0
  while done < total do
    local window = redis.call('LRANGE', processing, start, start + math.min(total - done, 1000) - 1)
    local size, hits, rest = #window, {}, {}
    for i = 1, size do
      local value, member = window[i], members[live[done + #hits + 1]]
      if member and #member == #value + 33 and find(member, value, 34, true) == 34 then
        hits[#hits + 1] = start + i - 1
      else
        rest[#rest + 1] = value
      end
    end
    if size == 0 or #rest * 2 > size then
      break
    end
    done = done + #hits
    if marked == 0 and start <= total then
      local before = start > 0 and redis.call('LRANGE', processing, 0, start - 1) or {}
      redis.call('LTRIM', processing, start + size, -1)
      prepend(processing, rest)
      prepend(processing, before)
    else
      for i = 1, #hits do
        redis.call('LSET', processing, hits[i], mark)
      end
      marked = marked + #hits
      start = start + size
    end
  end
  unmark(processing, marked, mark, start)
  return done
end

-- leave(processing, members, start, guesses): takes one copy of the value of each member out of processing. members
-- are "<32 hex>:<value>" by position, false for those that were not removed from deadlines; start and guesses come
-- from ranks. Returns by position whether the value was there: where it was not, somebody removed it and nothing
-- may be pushed anywhere (L4).
local function leave(processing, members, start, guesses)
  local live, left = {}, {}
  for i = 1, #members do
    left[i] = false
    if members[i] then
      live[#live + 1] = i
    end
  end
  if #live == 0 then
    return left
  end
  local mark = string.sub(members[live[1]], 1, 32)
  local done = 0
  if not guesses then
    -- Beside many messages of consumers with other leases, or without any, the rank is far off.
    local value = string.sub(members[live[1]], 34)
    start = seek(processing, value, start) or redis.call('LPOS', processing, value, 'RANK', -1) or start
    done = merge(processing, members, live, start, mark)
  end
  for i = 1, done do
    left[live[i]] = true
  end
  if done == #live then
    return left
  end

  local values, want, places = {}, {}, guesses and {}
  for i = done + 1, #live do
    local value = string.sub(members[live[i]], 34)
    values[i - done] = value
    want[value] = (want[value] or 0) + 1
    if guesses then
      places[i - done] = guesses[live[i]]
    end
  end
  if guesses then
    strike(processing, want, values, mark, places)
  else
    remove(processing, want, #values, values, mark)
  end
  for i = 1, #values do
    local value = values[i]
    if want[value] > 0 then
      want[value] = want[value] - 1
    else
      left[live[done + i]] = true
    end
  end
  return left
end
