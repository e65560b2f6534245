--- The read-only buffer that shows a conversation.
--- Prompts and answers are shown as markdown, all else as plain text. Tool calls and reasoning are one line each, with
--- their details folded below. Windows with the cursor on the last line scroll along; others do not. The buffer has no
--- undo.

local M = {}

local NS = vim.api.nvim_create_namespace("jumpseat.transcript")
local WELCOME = vim.api.nvim_create_namespace("jumpseat.welcome")
local DETAIL = "  │ "
local MAX_DETAIL_LINES = 200
local MARKS = { running = "○", done = "✓", failed = "✗", thought = "∴" }
local DIFF = { ["+"] = "JumpseatAdded", ["-"] = "JumpseatRemoved", ["@"] = "JumpseatDetails" }
local HIGHLIGHTS = {
  ["○"] = "JumpseatRunning",
  ["✓"] = "JumpseatDone",
  ["✗"] = "JumpseatFailed",
  ["∴"] = "JumpseatThought",
}

---@class jumpseat.Transcript
---@field buf integer
local Transcript = {}
Transcript.__index = Transcript

---@param name string of the buffer
---@return jumpseat.Transcript
function M.new(name)
  local buf = vim.api.nvim_create_buf(false, true)
  vim.api.nvim_buf_set_name(buf, name)
  vim.bo[buf].undolevels = -1
  vim.bo[buf].bufhidden = "hide"
  vim.bo[buf].modifiable = false
  local self = setmetatable({ buf = buf, last = nil, tools = {}, folds = {}, pending = {}, prose = {} }, Transcript)
  vim.api.nvim_create_autocmd("BufWinEnter", {
    buffer = buf,
    callback = function()
      self:setup_window(vim.api.nvim_get_current_win())
    end,
  })
  vim.bo[buf].filetype = "jumpseat"
  vim.treesitter.language.register("markdown", "jumpseat")
  if pcall(vim.treesitter.start, buf, "markdown") then
    self.parser = vim.treesitter.get_parser(buf, "markdown")
    self:parse_prose()
  else
    vim.bo[buf].syntax = "markdown"
  end
  return self
end

-- Writing ----------------------------------------------------------------------------------------------------------

--- Show two lines in the empty buffer, until something is written.
---@param first string
---@param second string
function Transcript:welcome(first, second)
  vim.api.nvim_buf_set_extmark(self.buf, WELCOME, 0, 0, {
    virt_text = { { first, "JumpseatHint" } },
    virt_text_pos = "overlay",
    virt_lines = { { { second, "JumpseatHint" } } },
  })
end

--- Change the buffer; windows that were at the end are moved to the new end.
function Transcript:write(change)
  local buf = self.buf
  if not vim.api.nvim_buf_is_valid(buf) then
    return
  end
  vim.api.nvim_buf_clear_namespace(buf, WELCOME, 0, -1)
  local followers = {}
  local count = vim.api.nvim_buf_line_count(buf)
  local visual = vim.fn.mode():find("^[vV\22]") and vim.api.nvim_get_current_win()
  for _, win in ipairs(vim.fn.win_findbuf(buf)) do
    if win ~= visual and vim.api.nvim_win_get_cursor(win)[1] == count then
      followers[#followers + 1] = win
    end
  end
  vim.bo[buf].modifiable = true
  local ok, problem = pcall(change)
  vim.bo[buf].modifiable = false
  vim.bo[buf].modified = false
  self:parse_prose()
  count = vim.api.nvim_buf_line_count(buf)
  for _, win in ipairs(followers) do
    vim.api.nvim_win_set_cursor(win, { count, 0 })
  end
  if not ok then
    error(problem, 0)
  end
end

--- Parse only prompts and answers as markdown: no character of a command, a path or an error may be concealed.
--- Runs once for all changes in an iteration of the main loop.
function Transcript:parse_prose()
  if not self.parser or self.parse_is_due then
    return
  end
  self.parse_is_due = true
  vim.schedule(function()
    self.parse_is_due = false
    if vim.api.nvim_buf_is_valid(self.buf) then
      self:parse_prose_now()
    end
  end)
end

function Transcript:parse_prose_now()
  local regions = {}
  local settled = false
  for index = #self.prose, 1, -1 do
    local one = self.prose[index]
    if not settled then
      local first = self:row_of(one.id)
      -- Streamed text extends to the end of the buffer.
      local last = one.lines and first + one.lines or vim.api.nvim_buf_line_count(self.buf)
      local from, to = vim.api.nvim_buf_get_offset(self.buf, first), vim.api.nvim_buf_get_offset(self.buf, last)
      local region = one.region and one.region[1]
      if region and region[1] == first and region[3] == from and region[4] == last and region[6] == to then
        -- Regions before an unmoved one have not moved either.
        settled = one.lines ~= nil
      else
        one.region = { { first, 0, from, last, 0, to } }
      end
    end
    regions[index] = one.region
  end
  -- Without a region, the whole buffer would be parsed.
  self.parser:set_included_regions(#regions > 0 and regions or { { { 0, 0, 0, 0 } } })
end

--- Mark rows as markdown: `lines` from `row` on, or all text that is streamed.
---@param row integer
---@param lines? integer
function Transcript:add_prose(row, lines)
  -- The mark stays before streamed text.
  local id = vim.api.nvim_buf_set_extmark(self.buf, NS, row, 0, { right_gravity = false })
  self.prose[#self.prose + 1] = { id = id, lines = lines }
end

local function lines_of(text)
  return vim.split((text:gsub("\r\n?", "\n")), "\n", { plain = true })
end

--- Append lines, after a blank line except between tool calls; then call `decorate` with the first row.
function Transcript:append(kind, lines, decorate)
  self:flush()
  self:write(function()
    local row = self:append_now(kind, lines)
    if decorate then
      decorate(row)
    end
  end)
end

function Transcript:append_now(kind, lines)
  local buf = self.buf
  self:close_text()
  local count = vim.api.nvim_buf_line_count(buf)
  local at_end = vim.api.nvim_buf_get_lines(buf, count - 1, count, false)[1]
  local empty = count == 1 and at_end == ""
  local out = {}
  if not empty and at_end ~= "" and not (kind == "tool" and self.last == "tool") then
    out[1] = ""
  end
  local first = (empty and 0 or count) + #out
  vim.list_extend(out, lines)
  vim.api.nvim_buf_set_lines(buf, empty and 0 or count, -1, false, out)
  self.last = kind
  return first
end

--- End streamed text: remove blank lines at its end, and close a code block that would include what follows.
function Transcript:close_text()
  if self.last ~= "text" then
    return
  end
  self.last = "closed"
  local buf = self.buf
  local lines = vim.api.nvim_buf_get_lines(buf, self.text_start, -1, false)
  local kept = #lines
  while kept > 1 and not lines[kept]:find("%S") do
    kept = kept - 1
  end
  vim.api.nvim_buf_set_lines(buf, self.text_start + kept, -1, false, {})
  local fence
  for _, line in ipairs(lines) do
    local mark = line:match("^%s*(```+)") or line:match("^%s*(~~~+)")
    if mark and not fence then
      fence = mark
    elseif mark and vim.startswith(mark, fence) then
      fence = nil
    end
  end
  if fence then
    vim.api.nvim_buf_set_lines(buf, -1, -1, false, { fence })
    kept = kept + 1
  end
  self.prose[#self.prose].lines = kept
end

---@param who "You"|"Agent"
function Transcript:header(who)
  if self.speaker ~= who then
    self.speaker = who
    self:append("header", { "## " .. who }, function(row)
      vim.api.nvim_buf_set_extmark(self.buf, NS, row, 0, { end_col = 3, conceal = "" })
      self:paint(row, 1, "JumpseatSpeaker")
    end)
  end
end

--- Append a prompt with the names of its attachments.
---@param prompt string
---@param attached string[]
function Transcript:user(prompt, attached)
  self.speaker = nil
  self:header("You")
  if #attached > 0 then
    local names = vim.tbl_map(function(name)
      return "> " .. name
    end, attached)
    self:append("attached", names, function(row)
      self:paint(row, #names, "JumpseatHint")
    end)
  end
  local lines = lines_of(vim.trim(prompt))
  self:append("prompt", lines, function(row)
    self:add_prose(row, #lines)
  end)
end

--- Add a piece of the answer. Pieces are written once per iteration of the main loop.
---@param text string
function Transcript:text(text)
  self.pending[#self.pending + 1] = text
  if #self.pending == 1 then
    vim.schedule(function()
      self:flush()
    end)
  end
end

function Transcript:flush()
  if #self.pending == 0 or not vim.api.nvim_buf_is_valid(self.buf) then
    return
  end
  local text = table.concat(self.pending)
  self.pending = {}
  self:header("Agent")
  self:write(function()
    local buf = self.buf
    if self.last ~= "text" then
      text = text:gsub("^%s*\n", "")
      self.text_start = self:append_now("text", { "" })
      self:add_prose(self.text_start)
    end
    local row = vim.api.nvim_buf_line_count(buf) - 1
    local column = #vim.api.nvim_buf_get_lines(buf, row, row + 1, false)[1]
    vim.api.nvim_buf_set_text(buf, row, column, row, column, lines_of(text))
  end)
end

--- Append a message of the plugin or the server, mostly an error.
---@param text string
function Transcript:note(text)
  local lines = lines_of(vim.trim(text))
  for index, line in ipairs(lines) do
    lines[index] = "> " .. line
  end
  self:append("note", lines, function(row)
    self:paint(row, #lines, vim.startswith(text, MARKS.failed) and "JumpseatFailed" or "JumpseatHint")
  end)
  self.speaker = nil
end

--- Highlight whole lines.
function Transcript:paint(row, lines, group)
  vim.api.nvim_buf_set_extmark(self.buf, NS, row, 0, { end_row = row + lines, hl_group = group })
end

-- Lines with details -----------------------------------------------------------------------------------------------

local function one_line(text)
  return (vim.trim(text):gsub("%s+", " "))
end

local function detail_lines(texts)
  local lines = {}
  for _, text in ipairs(texts) do
    if text ~= "" then
      for _, line in ipairs(lines_of((text:gsub("%s+$", "")))) do
        lines[#lines + 1] = DETAIL .. line
      end
    end
  end
  if #lines > MAX_DETAIL_LINES then
    local left_out = #lines - MAX_DETAIL_LINES
    lines = vim.list_slice(lines, 1, MAX_DETAIL_LINES)
    lines[#lines + 1] = ("%s... %d more lines"):format(DETAIL, left_out)
  end
  return lines
end

--- Highlight the mark at the beginning of a line; returns the extmark id, which moves with the line.
function Transcript:mark(row, mark, id)
  return vim.api.nvim_buf_set_extmark(self.buf, NS, row, 0, { id = id, end_col = #mark, hl_group = HIGHLIGHTS[mark] })
end

--- Return the text of a closed fold: its first line and the number of further lines.
---@return string[][] chunks of text and highlight
function M.foldtext()
  local line = vim.fn.getline(vim.v.foldstart)
  local mark = line:match("^[^ ]+") or ""
  local folded = vim.v.foldend - vim.v.foldstart
  local more = ("  ▸ %d %s"):format(folded, folded == 1 and "line" or "lines")
  local room = vim.api.nvim_win_get_width(0) - vim.api.nvim_strwidth(more)
  if vim.api.nvim_strwidth(line) > room then
    line = vim.fn.strcharpart(line, 0, room - 1) .. "…"
  end
  return { { mark, HIGHLIGHTS[mark] or "Normal" }, { line:sub(#mark + 1), "Normal" }, { more, "JumpseatDetails" } }
end

function Transcript:row_of(id)
  local place = vim.api.nvim_buf_get_extmark_by_id(self.buf, NS, id, {})
  return place[1]
end

--- Insert details below the line of a mark and fold them.
function Transcript:add_details(id, texts)
  local lines = detail_lines(texts)
  local row = self:row_of(id)
  if #lines > 0 then
    vim.api.nvim_buf_set_lines(self.buf, row + 1, row + 1, false, lines)
    local fold = { id = id, lines = #lines }
    self.folds[#self.folds + 1] = fold
    for _, win in ipairs(vim.fn.win_findbuf(self.buf)) do
      self:fold(win, fold)
    end
  end
end

--- Insert a diff as details, without its header, which repeats the file.
function Transcript:add_diff(id, diff)
  local lines = vim.tbl_filter(function(line)
    return not line:find("^%-%-%- ") and not line:find("^%+%+%+ ")
  end, lines_of(diff))
  self:add_details(id, { table.concat(lines, "\n") })
  local row = self:row_of(id)
  for index = 1, math.min(#lines, MAX_DETAIL_LINES) do
    local group = DIFF[lines[index]:sub(1, 1)]
    if group then
      local place = { end_row = row + index + 1, hl_group = group }
      vim.api.nvim_buf_set_extmark(self.buf, NS, row + index, #DETAIL, place)
    end
  end
end

function Transcript:fold(win, fold)
  local row = self:row_of(fold.id)
  if row then
    vim.api.nvim_win_call(win, function()
      vim.cmd(("silent! %d,%dfold"):format(row + 1, row + 1 + fold.lines))
    end)
  end
end

--- Append reasoning of the model, folded.
---@param text string
function Transcript:thought(text)
  if vim.trim(text) == "" then
    return
  end
  self:flush()
  self:header("Agent")
  self:write(function()
    local row = self:append_now("tool", { MARKS.thought .. " thought" })
    self:add_details(self:mark(row, MARKS.thought), { text })
  end)
end

--- Append a tool call that has started.
---@param call_id string
---@param title string
---@param arguments string
function Transcript:tool_started(call_id, title, arguments)
  self:flush()
  self:header("Agent")
  self:write(function()
    local row = self:append_now("tool", { MARKS.running .. " " .. one_line(title) })
    self.tools[call_id] = { mark = self:mark(row, MARKS.running), title = one_line(title), arguments = arguments }
  end)
end

--- Show the progress of a running tool call after its line, as virtual text.
---@param call_id string
---@param text string the last line is shown
function Transcript:tool_progress(call_id, text)
  local line = vim.trim(text):match("[^\r\n]*$")
  local tool = self.tools[call_id]
  if not tool or line == "" then
    return
  end
  local is_due = tool.progress
  tool.progress = line
  if is_due then
    return
  end
  -- A command may produce much output: update once per iteration of the main loop.
  vim.schedule(function()
    if self.tools[call_id] == tool and vim.api.nvim_buf_is_valid(self.buf) then
      local chunks = { { "  " .. tool.progress:gsub("%c", " "), "JumpseatDetails" } }
      local row = self:row_of(tool.mark)
      tool.progress_mark = vim.api.nvim_buf_set_extmark(self.buf, NS, row, 0, { id = tool.progress_mark, virt_text = chunks })
    end
    tool.progress = nil
  end)
end

--- Show the result of a tool call. `problem` is the error if it failed, `summary` a shorter description.
--- A `diff` is shown instead of arguments and result.
---@param call_id string
---@param outcome {result: string?, diff: string?, problem: string?, summary: string?}
function Transcript:tool_finished(call_id, outcome)
  local problem, summary = outcome.problem, outcome.summary
  local tool = self.tools[call_id]
  if not tool then
    return
  end
  self.tools[call_id] = nil
  self:flush()
  self:write(function()
    local mark = problem and MARKS.failed or MARKS.done
    local line = mark .. " " .. tool.title
    if summary then
      line = ("%s %s: %s"):format(mark, summary, tool.title)
    elseif problem then
      line = line .. ": " .. one_line(lines_of(problem)[1])
    end
    local row = self:row_of(tool.mark)
    if tool.progress_mark then
      vim.api.nvim_buf_del_extmark(self.buf, NS, tool.progress_mark)
    end
    vim.api.nvim_buf_set_lines(self.buf, row, row + 1, false, { line })
    self:mark(row, mark, tool.mark)
    if outcome.diff then
      self:add_diff(tool.mark, outcome.diff)
    else
      self:add_details(tool.mark, { tool.arguments, outcome.result or problem or "" })
    end
  end)
end

--- End the current text, so that the next starts a paragraph of its own.
function Transcript:end_text()
  self:flush()
  self:write(function()
    self:close_text()
  end)
end

--- Mark all running tool calls as failed.
function Transcript:settle(problem)
  self:flush()
  for _, call_id in ipairs(vim.tbl_keys(self.tools)) do
    self:tool_finished(call_id, { problem = problem })
  end
  self:end_text()
end

-- Windows ----------------------------------------------------------------------------------------------------------

--- Set the options and folds of a window that shows the buffer.
---@param win integer
function Transcript:setup_window(win)
  local options = {
    foldmethod = "manual",
    foldtext = "v:lua.require'jumpseat.transcript'.foldtext()",
    statusline = "%=",
    fillchars = "fold: ,eob: ",
    foldenable = true,
    wrap = true,
    linebreak = true,
    breakindent = true,
    number = false,
    relativenumber = false,
    signcolumn = "no",
    foldcolumn = "0",
    spell = false,
    list = false,
    -- The plain syntax cannot be limited to regions, so it must not conceal.
    conceallevel = self.parser and 2 or 0,
    concealcursor = "nc",
  }
  for name, value in pairs(options) do
    vim.wo[win][0][name] = value
  end
  vim.api.nvim_win_call(win, function()
    vim.cmd("silent! normal! zE")
  end)
  for _, fold in ipairs(self.folds) do
    self:fold(win, fold)
  end
end

return M
