--- What can be set, and where the socket is.

local M = {}

M.options = {
  --- Path of the socket; nil: where the daemon puts it by itself.
  socket = nil,
  --- Agent of new sessions.
  agent = "demo",
  --- Ask at once when an agent wants permission and its chat is on the screen.
  ask_at_once = true,
  --- Take the current buffer along with what is sent from it.
  send_buffer = true,
  --- Answer agents that want to read a file with what is in its unsaved buffer.
  offer_buffers = true,
  --- Earlier events that are shown of a session that is opened again.
  history = 2000,
  --- How the chat is opened.
  window = "botright 80vsplit",
}

---@param options? table
function M.setup(options)
  for name in pairs(options or {}) do
    if M.options[name] == nil and name ~= "socket" then
      error(("acphost: there is no option %q"):format(name))
    end
  end
  M.options = vim.tbl_extend("force", M.options, options or {})
end

--- The socket, by the same rule as the daemon's.
---@return string
function M.socket_path()
  local env = vim.env
  if M.options.socket or env.ACPHOST_SOCKET then
    return M.options.socket or env.ACPHOST_SOCKET
  end
  local runtime = env.XDG_RUNTIME_DIR
  if runtime and runtime:sub(1, 1) == "/" then
    return runtime .. "/acphost/acphost.sock"
  end
  local temporary = env.TMPDIR
  if not temporary or temporary:sub(1, 1) ~= "/" then
    temporary = "/tmp"
  end
  return ("%s/acphost-%d/acphost.sock"):format(temporary:gsub("/$", ""), vim.uv.getuid())
end

return M
