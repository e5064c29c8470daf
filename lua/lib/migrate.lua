-- migrate(source, ready, notify, now, limit): due members go in score order to the tail of ready, each with
-- one notify token (Z2). Returns how many. O(limit * log N).
local function migrate(source, ready, notify, now, limit)
  if limit < 1 then
    return 0
  end
  local due = redis.call('ZRANGEBYSCORE', source, '-inf', string.format('%.0f', now), 'LIMIT', 0, limit)
  variadic('ZREM', source, due)
  variadic('RPUSH', ready, due)
  tokens(notify, #due)
  return #due
end

-- promote(ready, delayed, reserved, notify, now, limit, leases): what is due of delayed, then, when leases
-- run out at all, of reserved; at most limit together.
local function promote(ready, delayed, reserved, notify, now, limit, leases)
  local moved = migrate(delayed, ready, notify, now, limit)
  if leases then
    moved = moved + migrate(reserved, ready, notify, now, limit - moved)
  end
  return moved
end
