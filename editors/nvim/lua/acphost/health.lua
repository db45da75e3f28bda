--- `:checkhealth acphost`

local M = {}

function M.check()
  local health = vim.health
  health.start("acphost")
  if vim.fn.has("nvim-0.10") == 1 then
    health.ok("Neovim is new enough")
  else
    health.error("Neovim 0.10 or newer is needed")
  end
  local path = require("acphost.config").socket_path()
  local found = vim.uv.fs_stat(path)
  if not found then
    health.error(path .. ": there is no socket", { "start the daemon: `acphost serve`" })
    return
  end
  local pipe, problem, is_done = assert(vim.uv.new_pipe(false)), nil, false
  pipe:connect(path, function(failure)
    problem, is_done = failure, true
  end)
  vim.wait(2000, function()
    return is_done
  end)
  pipe:close()
  if is_done and not problem then
    health.ok("a daemon answers at " .. path)
  else
    health.error(("%s: nobody answers (%s)"):format(path, problem or "time is over"))
  end
end

return M
