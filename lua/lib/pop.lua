-- pop(key, n, budget, chunk): takes up to n values from the head while their bytes stay below the budget.
-- The value that crosses the budget is the last one taken, so one body larger than the budget still moves.
-- chunk is the caller's guess of how many values fit; later chunks follow the mean size seen, and what a
-- chunk took beyond the budget goes back to the head. O(n).
local function pop(key, n, budget, chunk)
  local taken, count, bytes = {}, 0, 0
  while count < n and bytes < budget do
    local want = math.max(1, math.min(chunk, n - count, 1000))
    local values = redis.call('LPOP', key, want)
    if not values then
      break
    end
    local size, i = #values, 1
    while i <= size and bytes < budget do
      count = count + 1
      taken[count] = values[i]
      bytes = bytes + #values[i]
      i = i + 1
    end
    if i <= size then
      local excess = {}
      for j = i, size do
        excess[#excess + 1] = values[j]
      end
      prepend(key, excess)
      break
    end
    if size < want then
      break
    end
    chunk = math.floor((budget - bytes) * count / math.max(bytes, 1))
  end
  return taken, count
end
