--- The functions behind the editor's tools, and the buffer that the user worked in before entering the chat.

local M = {}

local SEVERITIES = { error = 1, warning = 2, info = 3, hint = 4 }
local SEVERITY_NAMES = { "error", "warning", "info", "hint" }
local MAX_LINES = 2000
local LONGEST_WAIT_MS = 1000
-- Some servers report errors of syntax first, and others right behind them.
local QUIET_MS = 150

---@type integer? the buffer that the user has worked in last
local current

--- Return whether a buffer is a file or has text, unlike the empty buffer that Neovim starts with.
local function is_file(buf)
  if not vim.api.nvim_buf_is_loaded(buf) or vim.bo[buf].buftype ~= "" or not vim.bo[buf].buflisted then
    return false
  end
  local empty = vim.api.nvim_buf_line_count(buf) == 1 and vim.api.nvim_buf_get_lines(buf, 0, 1, false)[1] == ""
  return vim.api.nvim_buf_get_name(buf) ~= "" or not empty
end

--- Remember the buffer that the user works in; called whenever a buffer is entered.
---@param buf integer
function M.remember(buf)
  if vim.bo[buf].buftype == "" and vim.bo[buf].buflisted then
    current = buf
  end
end

---@return integer?
local function user_buffer()
  if current and vim.api.nvim_buf_is_valid(current) and is_file(current) then
    return current
  end
end

--- Resolve a path of the model, which is relative to the session's folder rather than the window's.
---@param path string
---@param cwd? string
local function absolute(path, cwd)
  if cwd and not path:find("^[/~]") and not path:find("^%a:[/\\]") then
    path = vim.fs.joinpath(cwd, path)
  end
  return vim.fs.normalize(vim.fn.fnamemodify(path, ":p"))
end

--- Return a buffer's path as shown to the model: relative to the session's folder if the file is inside of it.
---@param buf integer
---@param cwd? string
local function display_path(buf, cwd)
  local name = vim.api.nvim_buf_get_name(buf)
  if name == "" then
    return ("[no name, buffer %d]"):format(buf)
  end
  local folder = vim.fs.normalize(cwd or vim.fn.getcwd()) .. "/"
  name = vim.fs.normalize(name)
  return vim.startswith(name, folder) and name:sub(#folder + 1) or name
end

---@param path string?
---@param cwd string
---@return integer? buf
---@return string? problem
local function find(path, cwd)
  if not path then
    local buf = user_buffer()
    return buf, not buf and "No file is open in the editor." or nil
  end
  local wanted = absolute(path, cwd)
  for _, buf in ipairs(vim.api.nvim_list_bufs()) do
    local name = vim.api.nvim_buf_get_name(buf)
    if is_file(buf) and name ~= "" and absolute(name) == wanted then
      return buf
    end
  end
  return nil, ("%s is not open in the editor."):format(path)
end

--- Return whether a call opens a file outside of the session's folder, which requires approval.
---@param args {path: string?}
---@param ctx {cwd: string}
function M.is_outside(args, ctx)
  local path = args.path
  if type(path) ~= "string" then
    local buf = user_buffer()
    path = buf and vim.api.nvim_buf_get_name(buf) or ""
  end
  if path == "" then
    return false
  end
  local cwd = vim.uv.fs_realpath(ctx.cwd) or ctx.cwd
  -- Links are resolved: a link inside to a file outside counts as outside.
  path = absolute(path, ctx.cwd)
  local real = vim.uv.fs_realpath(path) or path
  return not vim.startswith(vim.fs.normalize(real) .. "/", vim.fs.normalize(cwd) .. "/")
end

local function cursor_of(buf)
  local win = vim.fn.bufwinid(buf)
  return win ~= -1 and vim.api.nvim_win_get_cursor(win)[1] or vim.api.nvim_buf_get_mark(buf, '"')[1]
end

---@param ctx {cwd: string}
function M.buffers(_, ctx)
  local lines = {}
  for _, buf in ipairs(vim.api.nvim_list_bufs()) do
    if is_file(buf) then
      local marks = {}
      if buf == user_buffer() then
        marks[#marks + 1] = ("the user is here, line %d"):format(cursor_of(buf))
      end
      if vim.bo[buf].modified then
        marks[#marks + 1] = "unsaved changes"
      end
      lines[#lines + 1] = display_path(buf, ctx.cwd) .. (#marks > 0 and " (" .. table.concat(marks, "; ") .. ")" or "")
    end
  end
  return #lines > 0 and table.concat(lines, "\n") or "No file is open in the editor."
end

local function numbered(lines, first)
  for index, line in ipairs(lines) do
    lines[index] = ("%d. %s"):format(first + index - 1, line)
  end
  return table.concat(lines, "\n")
end

---@param args {path: string?, first_line: integer?, last_line: integer?}
---@param ctx {cwd: string}
function M.read_buffer(args, ctx)
  local buf, problem = find(args.path, ctx.cwd)
  if not buf then
    return nil, problem
  end
  local count = vim.api.nvim_buf_line_count(buf)
  local first = args.first_line or 1
  local last = math.min(args.last_line or count, count, first + MAX_LINES - 1)
  if first > count then
    return nil, ("%s has %d lines."):format(display_path(buf, ctx.cwd), count)
  end
  local head = ("%s, lines %d to %d of %d"):format(display_path(buf, ctx.cwd), first, last, count)
  if vim.bo[buf].modified then
    head = head .. ", with unsaved changes"
  end
  return head .. "\n" .. numbered(vim.api.nvim_buf_get_lines(buf, first - 1, last, false), first)
end

---@param args {path: string?, severity: string?}
---@param ctx {cwd: string}
function M.diagnostics(args, ctx)
  local buf, problem
  if args.path then
    buf, problem = find(args.path, ctx.cwd)
    if not buf then
      return nil, problem
    end
  end
  local worst = SEVERITIES[args.severity or "hint"] or 4
  local found = vim.diagnostic.get(buf, { severity = { min = worst, max = 1 } })
  table.sort(found, function(a, b)
    if a.bufnr ~= b.bufnr then
      return display_path(a.bufnr) < display_path(b.bufnr)
    end
    return a.lnum < b.lnum or (a.lnum == b.lnum and a.col < b.col)
  end)
  local lines = {}
  for _, one in ipairs(found) do
    local code = one.code and (" [%s]"):format(one.code) or ""
    local source = one.source and (" (%s)"):format(one.source) or ""
    local place = ("%s:%d:%d"):format(display_path(one.bufnr, ctx.cwd), one.lnum + 1, one.col + 1)
    local text = one.message:gsub("%s*\n%s*", " ")
    lines[#lines + 1] = ("%s: %s: %s%s%s"):format(place, SEVERITY_NAMES[one.severity], text, code, source)
  end
  return #lines > 0 and table.concat(lines, "\n") or "No diagnostics."
end

--- Call `continue` once the language servers of files that were just changed have reported, a second later at most.
---@param paths string[]
---@param cwd? string
---@param continue fun()
function M.when_checked(paths, cwd, continue)
  local waiting, ended, watch = {}, false, nil
  for _, path in ipairs(paths) do
    local buf = type(path) == "string" and find(path, cwd)
    if buf and #vim.lsp.get_clients({ bufnr = buf }) > 0 then
      waiting[buf] = true
    end
  end
  if next(waiting) == nil then
    return continue()
  end
  local function finish()
    if not ended then
      ended = true
      vim.api.nvim_del_autocmd(watch)
      continue()
    end
  end
  watch = vim.api.nvim_create_autocmd("DiagnosticChanged", {
    callback = function(event)
      if waiting[event.buf] then
        waiting[event.buf] = nil
        if next(waiting) == nil then
          vim.defer_fn(finish, QUIET_MS)
        end
      end
    end,
  })
  vim.defer_fn(finish, LONGEST_WAIT_MS)
end

--- Return the last selection in a buffer, by default the one that the user works in.
---@param buf? integer
---@param cwd? string
---@return {path: string, name: string, first: integer, last: integer, text: string}?
function M.selected(buf, cwd)
  buf = buf or user_buffer()
  if not buf then
    return nil
  end
  local first, last, kind = vim.api.nvim_buf_get_mark(buf, "<"), vim.api.nvim_buf_get_mark(buf, ">"), nil
  vim.api.nvim_buf_call(buf, function()
    kind = vim.fn.visualmode()
  end)
  local mode = vim.fn.mode()
  if vim.api.nvim_get_current_buf() == buf and mode:find("^[vV\22]") then
    local start, cursor = vim.fn.getpos("v"), vim.fn.getpos(".")
    first, last, kind = { start[2], start[3] - 1 }, { cursor[2], cursor[3] - 1 }, mode
    if first[1] > last[1] or (first[1] == last[1] and first[2] > last[2]) then
      first, last = last, first
    end
  end
  if first[1] == 0 or last[1] == 0 or kind == "" then
    return nil
  end
  local lines
  vim.api.nvim_buf_call(buf, function()
    -- The end of a linewise selection is a column beyond every line.
    local longest = #vim.fn.getline(last[1])
    local from, to = { buf, first[1], first[2] + 1, 0 }, { buf, last[1], math.min(last[2] + 1, math.max(longest, 1)), 0 }
    lines = vim.fn.getregion(from, to, { type = kind })
  end)
  return {
    path = vim.api.nvim_buf_get_name(buf),
    name = display_path(buf, cwd),
    first = first[1],
    last = last[1],
    text = table.concat(lines, "\n"),
  }
end

--- Return whole lines of a buffer, in the format of `selected`.
---@param buf integer
---@param first integer
---@param last integer
function M.lines(buf, first, last)
  return {
    path = vim.api.nvim_buf_get_name(buf),
    name = display_path(buf),
    first = first,
    last = last,
    text = table.concat(vim.api.nvim_buf_get_lines(buf, first - 1, last, false), "\n"),
  }
end

--- Return the files and folders mentioned as @path in a prompt, as attachments.
---@param prompt string
---@param cwd string
---@return {type: "file"|"directory", path: string, displayName: string}[]
function M.mentioned(prompt, cwd)
  local found, seen = {}, {}
  for name in (" " .. prompt):gmatch("%s@(%S+)") do
    for _, path in ipairs({ name, (name:gsub("%p+$", "")) }) do
      local full = absolute(path, cwd)
      local stat = path ~= "" and not seen[full] and vim.uv.fs_stat(full)
      if stat and (stat.type == "file" or stat.type == "directory") then
        seen[full] = true
        found[#found + 1] = { type = stat.type, path = full, displayName = path }
        break
      end
    end
  end
  return found
end

---@param ctx {cwd: string}
function M.selection(_, ctx)
  local found = M.selected(nil, ctx.cwd)
  if not found then
    return "Nothing is selected."
  end
  return ("%s, lines %d to %d:\n%s"):format(found.name, found.first, found.last, found.text)
end

--- Return a window for files: that of the user's buffer, any other with a file, or a new one.
local function file_window()
  local buf = user_buffer()
  local win = buf and vim.fn.bufwinid(buf) or -1
  if win ~= -1 then
    return win
  end
  for _, other in ipairs(vim.api.nvim_tabpage_list_wins(0)) do
    if vim.bo[vim.api.nvim_win_get_buf(other)].buftype == "" and vim.api.nvim_win_get_config(other).relative == "" then
      return other
    end
  end
  local before = vim.api.nvim_get_current_win()
  vim.cmd("topleft vnew")
  local made = vim.api.nvim_get_current_win()
  vim.api.nvim_set_current_win(before)
  return made
end

---@param args {path: string, line: integer?, column: integer?}
---@param ctx {cwd: string}
function M.open(args, ctx)
  local path = absolute(args.path, ctx.cwd)
  if vim.fn.isdirectory(path) == 1 or not vim.uv.fs_stat(path) then
    return nil, ("%s is not a file."):format(args.path)
  end
  local buf = vim.fn.bufadd(path)
  vim.bo[buf].buflisted = true
  local win = file_window()
  vim.api.nvim_win_call(win, function()
    -- `buffer` alone would refuse to leave a modified buffer without 'hidden'.
    vim.cmd("keepalt hide buffer " .. buf)
  end)
  M.remember(buf)
  local line = math.min(math.max(args.line or 1, 1), vim.api.nvim_buf_line_count(buf))
  if args.line then
    vim.api.nvim_win_set_cursor(win, { line, math.max((args.column or 1) - 1, 0) })
    vim.api.nvim_win_call(win, function()
      vim.cmd("normal! zvzz")
    end)
  end
  return ("Opened %s at line %d."):format(display_path(buf, ctx.cwd), vim.api.nvim_win_get_cursor(win)[1])
end

return M
