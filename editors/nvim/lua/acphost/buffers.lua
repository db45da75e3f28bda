--- Buffers towards the agent: as context of a prompt, and as answers to `fs/read_text_file`.

local M = {}

--- An error that says: the file on disk is all there is.
local function not_here(path)
  return { code = -32002, message = "no unsaved buffer has " .. path, data = { code = "not_found" } }
end

---@param path string
---@return integer? buffer
local function unsaved(path)
  local wanted = vim.uv.fs_realpath(path) or vim.fs.normalize(path)
  for _, buffer in ipairs(vim.api.nvim_list_bufs()) do
    local name = vim.api.nvim_buf_get_name(buffer)
    if vim.api.nvim_buf_is_loaded(buffer) and vim.bo[buffer].modified and name ~= "" then
      if (vim.uv.fs_realpath(name) or vim.fs.normalize(name)) == wanted then
        return buffer
      end
    end
  end
end

--- The answer to `fs/read_text_file`: what is in a buffer and not yet in the file.
---@param params {path: string, line?: integer, limit?: integer}
---@return {content: string}?, table?
function M.read(params)
  local buffer = unsaved(params.path)
  if not buffer then
    return nil, not_here(params.path)
  end
  local first = math.max((params.line or 1) - 1, 0)
  local last = params.limit and first + params.limit or -1
  local count = vim.api.nvim_buf_line_count(buffer)
  local lines = vim.api.nvim_buf_get_lines(buffer, first, last, false)
  local is_whole = last == -1 or last >= count
  local ends = not is_whole or vim.bo[buffer].eol
  return { content = table.concat(lines, "\n") .. (ends and #lines > 0 and "\n" or "") }
end

--- A buffer, or some lines of it, as a content block of a prompt.
---@param buffer integer
---@param first? integer 1-based
---@param last? integer
---@return table? block, string? reference
function M.block(buffer, first, last)
  local name = vim.api.nvim_buf_get_name(buffer)
  if vim.bo[buffer].buftype ~= "" or (name == "" and not first) then
    return nil
  end
  local lines = vim.api.nvim_buf_get_lines(buffer, (first or 1) - 1, last or -1, false)
  local uri = name == "" and "untitled:" .. buffer or vim.uri_from_fname(name)
  if first then
    uri = ("%s#L%d-L%d"):format(uri, first, last)
  end
  local resource = { uri = uri, mimeType = "text/plain", text = table.concat(lines, "\n") .. "\n" }
  return { type = "resource", resource = resource }, first and "selection" or "active_editor"
end

--- A saved file as a link: the agent can read it by itself.
---@param buffer integer
---@return table? block, string? reference
function M.link(buffer)
  local name = vim.api.nvim_buf_get_name(buffer)
  if vim.bo[buffer].buftype ~= "" or name == "" then
    return nil
  end
  return {
    type = "resource_link",
    uri = vim.uri_from_fname(name),
    name = vim.fs.basename(name),
  },
    "active_editor"
end

return M
