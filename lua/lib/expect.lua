-- expect(key, kind): nil when the key holds that kind of value or nothing, else an error reply that names
-- the key. Scripts do not roll back, so every key is checked before the first write (B07).
local function expect(key, kind)
  local held = redis.call('TYPE', key)
  held = held.ok or held
  if held ~= kind and held ~= 'none' then
    return redis.error_reply('WRONGTYPE key ' .. key .. ' holds a ' .. held .. ', not a ' .. kind)
  end
end
