-- leave(processing, held, first, guesses): takes one copy of each held value out of processing. held comes from the
-- gate, guesses from ranks; ARGV[first] is the member of position 1, "<32 hex>:<value>". Returns by position
-- whether the value was there: where it was not, somebody removed it and nothing may be pushed anywhere (L4).
--
-- Members come in reservation order, and so do the values in the list. So the two are merged: a window of the
-- list's head is walked beside the members, what matches leaves, and the rest goes back. A value is compared in
-- place, because Redis's Lua hashes every byte of every string it makes, which is what a long body costs most.
-- Where the window is not at least half hits, or where ranks says so from the start, the values are looked for
-- one by one (see strike and remove).
local function leave(processing, held, first, guesses)
  local live, total, left = {}, 0, {}
  for i = 1, #held do
    left[i] = false
    if held[i] then
      total = total + 1
      live[total] = i
    end
  end
  local find, at = string.find, 1
  while at <= total and not guesses do
    local window = redis.call('LRANGE', processing, 0, math.min(total - at, 999))
    local size, next_one, rest = #window, at, {}
    for i = 1, size do
      local value = window[i]
      local member = next_one <= total and ARGV[first + live[next_one] - 1]
      if member and #member == #value + 33 and find(member, value, 34, true) == 34 then
        next_one = next_one + 1
      else
        rest[#rest + 1] = value
      end
    end
    if size == 0 or #rest * 2 > size then
      break
    end
    redis.call('LTRIM', processing, size, -1)
    prepend(processing, rest)
    for i = at, next_one - 1 do
      left[live[i]] = true
    end
    at = next_one
  end
  if at > total then
    return left
  end

  local values, want = {}, {}
  for i = at, total do
    local value = string.sub(ARGV[first + live[i] - 1], 34)
    values[i] = value
    want[value] = (want[value] or 0) + 1
  end
  local missing = total - at + 1
  if guesses then
    local places, present = {}, {}
    for i = 1, total do
      places[i], present[i] = guesses[live[i]], values[i]
    end
    missing = missing - strike(processing, want, present, places, string.sub(ARGV[first + live[1] - 1], 1, 32))
  end
  remove(processing, want, missing)
  for i = at, total do
    local value = values[i]
    if want[value] > 0 then
      want[value] = want[value] - 1
    else
      left[live[i]] = true
    end
  end
  return left
end
