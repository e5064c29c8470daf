-- Probe (R1): whether this user may run the commands of a consumer. A script that is refused a command half-way has taken
-- messages out of one key and cannot put them into the other, and scripts do not roll back; so this asks before.
--
-- KEYS    1 a key that holds a sorted set or nothing: deadlines or reserved
-- ARGV    1 'all' where messages in flight are in a list, which takes more commands
-- Returns the names of the commands that are refused.
-- Promise nothing is changed: the member that it adds goes in the same step, and a list command that is allowed meets a key
--         of another type.
-- Cost    O(log N).
-- @include expect
local leases = KEYS[1]
local wrong = expect(leases, 'zset')
if wrong then
  return wrong
end
local refused = {}
-- ask runs a command; any answer but a refusal means that it is allowed.
local function ask(command, ...)
  local answer = redis.pcall(command, leases, ...)
  if type(answer) == 'table' and answer.err and (string.find(answer.err, 'NOPERM', 1, true)
    or string.find(answer.err, 'The user executing the script', 1, true)) then
    refused[#refused + 1] = string.lower(command)
    return false
  end
  return true
end
if ask('ZREM', '-') and ask('ZADD', 'XX', 0, '-') then
  redis.call('ZADD', leases, 0, '-')
  ask('LPOP', 1)
  ask('RPUSH', '-')
  ask('LPUSH', '-')
  ask('LTRIM', 0, -1)
  ask('LLEN')
  if ARGV[1] == 'all' then
    ask('LRANGE', 0, 0)
    ask('LREM', 1, '-')
    ask('LINDEX', 0)
    ask('LSET', 0, '-')
    ask('LPOS', '-')
  end
  redis.call('ZREM', leases, '-')
end
ask('ZRANGEBYSCORE', '(1', 1)
ask('ZSCORE', '-')
ask('ZMSCORE', '-')
if ARGV[1] == 'all' then
  ask('ZREMRANGEBYRANK', 1, 0)
  ask('ZRANGE', 1, 0)
  ask('ZRANK', '-')
end
return refused
