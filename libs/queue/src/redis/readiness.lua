-- Answers which of the commands in ARGV the user of this connection may not run on KEYS[1], which stands for a channel too.
-- Redis before 7 can't tell.
function scripts.missingCommands()
  local missing = {}
  if not redis.acl_check_cmd then return missing end
  for _, command in ipairs(ARGV) do
    local known, may = pcall(redis.acl_check_cmd, command, KEYS[1], KEYS[1], KEYS[1])
    if not (known and may) then table.insert(missing, command) end
  end
  return missing
end
