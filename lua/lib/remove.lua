-- remove(key, want, total): removes want[value] copies of each value from a list, total in all, and leaves
-- in want what was not found.
--
-- LREM scans from the head: cheap near it, ruinous in a long list (B38). So the head is looked at first, in
-- windows as large as what is still wanted. A window that is at least half wanted is cut off in one LTRIM
-- and the rest put back; one that is not is left alone and its values are removed one by one. Looking
-- writes nothing, so a wrong guess costs no AOF bytes. In reservation order every window matches whole:
-- O(total). At worst O(total * length).
local function remove(key, want, total)
  while total > 0 do
    local window = redis.call('LRANGE', key, 0, math.min(total, 1000) - 1)
    local size = #window
    if size == 0 then
      return
    end
    local hits, rest = {}, {}
    for i = 1, size do
      local value = window[i]
      local count = want[value]
      if count and count > 0 then
        want[value] = count - 1
        hits[#hits + 1] = value
      else
        rest[#rest + 1] = value
      end
    end
    if #hits * 2 < size then
      for i = 1, #hits do
        want[hits[i]] = want[hits[i]] + 1
      end
      break
    end
    redis.call('LTRIM', key, size, -1)
    prepend(key, rest)
    total = total - #hits
  end
  if total > 0 then
    for value, count in pairs(want) do
      if count > 0 then
        want[value] = count - redis.call('LREM', key, count, value)
      end
    end
  end
end
