-- overdue(leases, now, limit, counting): the members whose lease has run out, in score order, at most limit. When lost
-- workers are counted it also returns, by member, which are excused: a lease that ends at half a second was left by a
-- worker that lived (see excuse.lua). Such a lease ends with the same whole second of the clock.
local function overdue(leases, now, limit, counting)
  local last = string.format('%.0f', now)
  if not counting then
    return redis.call('ZRANGEBYSCORE', leases, '-inf', last, 'LIMIT', 0, limit)
  end
  local scored, due, excused = redis.call('ZRANGEBYSCORE', leases, '-inf', last, 'WITHSCORES', 'LIMIT', 0, limit), {}, {}
  for i = 1, #scored, 2 do
    due[#due + 1] = scored[i]
    excused[scored[i]] = tonumber(scored[i + 1]) % 1 == 0.5
  end
  return due, excused
end

-- lost(recoveries, texts, keep): one more lost worker for each of the texts (B21). What left by other hands keeps its
-- count, so growth is bounded twice: the whole hash is forgotten when no worker was lost for keep seconds, and beyond
-- 10,000 messages counts are dropped at random. A dropped count begins anew at the next loss. O(texts).
local function lost(recoveries, texts, keep)
  if #texts == 0 then
    return
  end
  local fields = {}
  for i = 1, #texts do
    fields[i] = field(texts[i])
  end
  local before, raised, at = counts(recoveries, fields), {}, {}
  for i = 1, #fields do
    local place = at[fields[i]]
    if not place then
      place = #raised + 1
      at[fields[i]] = place
      raised[place], raised[place + 1] = fields[i], before[i]
    end
    raised[place + 1] = raised[place + 1] + 1
  end
  variadic('HSET', recoveries, raised)
  local surplus = redis.call('HLEN', recoveries) - 10000
  if surplus > 0 then
    variadic('HDEL', recoveries, redis.call('HRANDFIELD', recoveries, math.min(surplus, 1000)))
  end
  redis.call('EXPIRE', recoveries, keep)
end
