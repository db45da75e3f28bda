--- What outlives Neovim: the session of each folder, how far it was read, and the run at work.
---
--- `activeRun` is the record `mnote.page_ai_active_run_snapshot.v1`: on return the daemon is asked
--- about that run first.

local M = {}

local FORMAT = "acphost.nvim.v1"
local SNAPSHOT = "mnote.page_ai_active_run_snapshot.v1"

---@class acphost.Remembered
---@field sessionId string
---@field storeId string the journal that `lastSeq` counts in
---@field lastSeq string
---@field activeRun? {hostRunId: string, sessionId: string, lastSeq: string, createdAt: string}

local function file_of(cwd)
  local folder = vim.fn.stdpath("state") .. "/acphost"
  return ("%s/%s.json"):format(folder, vim.fn.sha256(vim.uv.fs_realpath(cwd) or cwd):sub(1, 24)), folder
end

---@param cwd string
---@return acphost.Remembered?
function M.load(cwd)
  local file = io.open((file_of(cwd)), "r")
  if not file then
    return nil
  end
  local text = file:read("*a")
  file:close()
  local ok, found = pcall(vim.json.decode, text, { luanil = { object = true } })
  if ok and type(found) == "table" and found.format == FORMAT and found.sessionId then
    return found
  end
end

--- Write in one step: a crash leaves the old file or the new one.
---@param cwd string
---@param remembered acphost.Remembered
function M.save(cwd, remembered)
  local path, folder = file_of(cwd)
  vim.fn.mkdir(folder, "p", "0700")
  local kept = vim.tbl_extend("force", { format = FORMAT, cwd = cwd }, remembered)
  local beside = ("%s.%d"):format(path, vim.uv.os_getpid())
  local file = assert(io.open(beside, "w"))
  file:write(vim.json.encode(kept))
  file:close()
  assert(vim.uv.fs_rename(beside, path))
end

---@param cwd string
function M.forget(cwd)
  os.remove((file_of(cwd)))
end

--- The record of a run at work.
---@param run acphost.Run
---@param last_seq string
function M.snapshot(run, last_seq)
  return {
    schema = SNAPSHOT,
    hostRunId = run.hostRunId,
    sessionId = run.sessionId,
    lastSeq = last_seq,
    createdAt = run.createdAt,
  }
end

return M
