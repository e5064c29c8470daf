-- cut(key, want, total, newest): takes what is wanted off one end of a list, in windows as large as what is
-- still wanted. A window that is at least half wanted is cut off in one LTRIM and the rest put back; the first
-- one that is not is left alone and ends it. Looking writes nothing, so a wrong guess costs no AOF bytes.
-- Returns how many are still to be found.
local function cut(key, want, total, newest)
  while total > 0 do
    local reach = math.min(total, 1000)
    local window = redis.call('LRANGE', key, newest and -reach or 0, newest and -1 or reach - 1)
    local size = #window
    if size == 0 then
      return 0
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
    if newest then
      redis.call('LTRIM', key, 0, -size - 1)
      variadic('RPUSH', key, rest)
    else
      redis.call('LTRIM', key, size, -1)
      prepend(key, rest)
    end
    total = total - #hits
  end
  return total
end

-- remove(key, want, total, values, mark): removes want[value] copies of each of the values from a list, total in
-- all, and leaves in want what was not found.
--
-- LREM scans from the head: cheap near it, ruinous in a long list (B38). So both ends are looked at first: what
-- is settled in reservation order stands at the head, or at the tail when another consumer's slow messages
-- stand before it, or when a long hand back sends its last chunk first. Only the others are removed one by one,
-- from a long list by strike.
local function remove(key, want, total, values, mark)
  total = cut(key, want, total, false)
  total = cut(key, want, total, true)
  if total == 0 then
    return
  end
  if redis.call('LLEN', key) >= 512 then
    return strike(key, want, values, mark)
  end
  for value, count in pairs(want) do
    if count > 0 then
      want[value] = count - redis.call('LREM', key, count, value)
    end
  end
end
