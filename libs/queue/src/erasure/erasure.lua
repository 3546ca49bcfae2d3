-- Marks a subject as erased: data made before the mark is refused from now on. A mark never moves to an earlier time.
-- KEYS marks of the tenant. ARGV mark of the subject, ms since 1970 from which its data is new, or '' for the present. Answers the time.
function scripts.markErased()
  -- Data made in this very millisecond counts as older.
  local at = ARGV[2] ~= '' and tonumber(ARGV[2]) or now() + 1
  local known = tonumber(redis.call('HGET', KEYS[1], ARGV[1]) or 0)
  if at > known then redis.call('HSET', KEYS[1], ARGV[1], string.format('%d', at)) end
  return string.format('%d', at)
end
