--- Questions to the user: may this run, and what the model asks. One at a time, and never into somebody's typing.
--- Knows how a request looks to a person; what the answer leads to is the session's business.

local M = {}

---@class jumpseat.Question
---@field session table whose question it is
---@field id? string of the permission request
---@field show fun(self: jumpseat.Question)
---@field closed? boolean

---@type jumpseat.Question[] those that wait, the first one being on the screen
local queue = {}

-- What a request looks like ----------------------------------------------------------------------------------------

local function one_line(value)
  local text = type(value) == "string" and value or vim.json.encode(value)
  return (text:gsub("%s+", " "))
end

local function split(text)
  return vim.split((text:gsub("\n$", "")), "\n", { plain = true })
end

local function relative(path)
  return vim.fn.fnamemodify(path or "?", ":.")
end

local function arguments(value)
  if type(value) ~= "table" or next(value) == nil then
    return {}
  end
  local names = vim.tbl_keys(value)
  table.sort(names, function(a, b)
    return tostring(a) < tostring(b)
  end)
  local lines = {}
  for _, name in ipairs(names) do
    local text = value[name]
    for index, line in ipairs(split(type(text) == "string" and text or vim.json.encode(text))) do
      lines[#lines + 1] = (index == 1 and tostring(name) .. ": " or "  ") .. line
    end
  end
  return lines
end

local KINDS = {
  shell = function(request)
    local lines = split(request.fullCommandText or "")
    if request.warning then
      vim.list_extend(lines, { "", "# " .. one_line(request.warning) })
    end
    return "run this command?", lines, "sh"
  end,
  write = function(request)
    -- The heads of a diff name the file once more, with its whole path.
    local lines = vim.tbl_filter(function(line)
      return not line:find("^%-%-%- ") and not line:find("^%+%+%+ ")
    end, split(request.diff or ""))
    local what = (request.diff or ""):find("^%-%-%- /dev/null") and "create" or "change"
    return ("%s %s?"):format(what, relative(request.fileName)), lines, "diff"
  end,
  read = function(request)
    return ("read %s?"):format(relative(request.path)), {}, ""
  end,
  url = function(request)
    local from = request.redirectedFrom and { "redirected from " .. request.redirectedFrom } or {}
    return ("open %s?"):format(one_line(request.url or "?")), from, ""
  end,
  memory = function(request)
    return ("%s a memory?"):format(request.action or "store"), split(request.fact or ""), ""
  end,
  ["custom-tool"] = function(request)
    return ("call %s?"):format(request.toolName or "?"), arguments(request.args), ""
  end,
  hook = function(request)
    local lines = arguments(request.toolArgs)
    if request.hookMessage then
      lines = vim.list_extend({ "# " .. one_line(request.hookMessage) }, lines)
    end
    return ("call %s? A hook wants you to decide"):format(request.toolName or "?"), lines, ""
  end,
}

--- A permission request as a person reads it: what it is, what there is to see, and the filetype of that.
---@param request table
---@return string title
---@return string[] lines
---@return string filetype
function M.describe(request)
  local kind = KINDS[request.kind]
  if kind then
    local title, lines, filetype = kind(request)
    return one_line(title), lines, filetype
  end
  return ("do this (%s)?"):format(tostring(request.kind)), split(vim.inspect(request)), "lua"
end

-- The preview ------------------------------------------------------------------------------------------------------

local Preview = {}
Preview.__index = Preview

--- Show lines in a window in the middle, above where `vim.ui.select` writes.
local function preview(title, lines, filetype)
  local buf = vim.api.nvim_create_buf(false, true)
  vim.api.nvim_buf_set_lines(buf, 0, -1, false, lines)
  vim.bo[buf].modifiable = false
  vim.bo[buf].bufhidden = "wipe"
  local widest = vim.api.nvim_strwidth(title) + 2
  for _, line in ipairs(lines) do
    widest = math.max(widest, vim.api.nvim_strwidth(line))
  end
  local width = math.max(20, math.min(widest + 1, vim.o.columns - 8))
  local room = math.max(3, vim.o.lines - 12)
  -- Long lines wrap: what is allowed must not hide beyond the edge.
  local rows = 0
  for _, line in ipairs(lines) do
    rows = rows + math.max(1, math.ceil(vim.api.nvim_strwidth(line) / width))
  end
  local height = math.min(rows, room)
  local win = vim.api.nvim_open_win(buf, false, {
    relative = "editor",
    row = math.max(0, math.floor((room - height) / 2)),
    col = math.floor((vim.o.columns - width) / 2) - 1,
    width = width,
    height = height,
    style = "minimal",
    border = "rounded",
    title = " " .. title .. " ",
    title_pos = "center",
    noautocmd = true,
  })
  vim.wo[win][0].wrap = true
  if filetype ~= "" then
    vim.bo[buf].syntax = filetype
  end
  return setmetatable({ win = win, buf = buf, hidden_rows = rows - height }, Preview)
end

function Preview:close()
  if vim.api.nvim_win_is_valid(self.win) then
    vim.api.nvim_win_close(self.win, true)
  end
end

--- Let the user walk through it; `done` when the window is left.
function Preview:enter(done)
  local before = vim.api.nvim_get_current_win()
  vim.api.nvim_set_current_win(self.win)
  for _, key in ipairs({ "q", "<Esc>", "<CR>" }) do
    vim.keymap.set("n", key, function()
      if vim.api.nvim_win_is_valid(before) then
        vim.api.nvim_set_current_win(before)
      end
    end, { buffer = self.buf, desc = "Back to the question" })
  end
  vim.api.nvim_create_autocmd("WinLeave", {
    buffer = self.buf,
    once = true,
    callback = function()
      vim.schedule(done)
    end,
  })
end

-- One at a time ----------------------------------------------------------------------------------------------------

local function typing()
  return vim.fn.mode():sub(1, 1) ~= "n" or vim.fn.getcmdwintype() ~= ""
end

local waiting_for_normal_mode = false

--- Show the first question, as soon as nobody types: a key meant for a text must not approve anything.
local function show_next()
  local question = queue[1]
  if not question or question.shown then
    return
  end
  if typing() then
    if not waiting_for_normal_mode then
      waiting_for_normal_mode = true
      vim.api.nvim_create_autocmd({ "ModeChanged", "CmdwinLeave" }, {
        callback = function()
          if typing() then
            return
          end
          waiting_for_normal_mode = false
          vim.schedule(show_next)
          return true
        end,
      })
    end
    return
  end
  question.shown = true
  local ok, problem = xpcall(question.show, debug.traceback, question)
  if not ok then
    vim.notify("jumpseat: could not ask: " .. problem, vim.log.levels.ERROR)
    question:give_up()
  end
end

local function add(question)
  queue[#queue + 1] = question
  question.session.asking = (question.session.asking or 0) + 1
  question.session.on_change()
  vim.api.nvim_exec_autocmds("User", { pattern = "JumpseatQuestion", data = { session = question.session.id } })
  vim.schedule(show_next)
end

--- Take a question off the queue and the screen; whether it was still open.
local function close(question)
  if question.closed then
    return false
  end
  question.closed = true
  for index, one in ipairs(queue) do
    if one == question then
      table.remove(queue, index)
      break
    end
  end
  if question.preview then
    question.preview:close()
  end
  question.session.asking = question.session.asking - 1
  question.session.on_change()
  vim.schedule(show_next)
  return true
end

--- Withdraw what was asked for a session: all of it, or one permission request.
---@param session table
---@param id? string
function M.withdraw(session, id)
  for _, question in ipairs(vim.list_slice(queue)) do
    if question.session == session and (id == nil or question.id == id) then
      if close(question) and question.withdrawn then
        question:withdrawn()
      end
    end
  end
end

--- How many questions are open.
function M.open_questions()
  return #queue
end

-- The two kinds of question ----------------------------------------------------------------------------------------

local ONCE, SESSION = "Allow once", "Allow for this session"
local LOOK, REJECT, EXPLAIN = "Look at all of it", "Reject", "Reject, and tell why"

---@param session table
---@param id string
---@param request table
---@param decide fun(decision: {kind: string, feedback: string?})
function M.ask(session, id, request, decide)
  local question = { session = session, id = id }

  local function settle(decision)
    if close(question) then
      decide(decision)
    end
  end

  function question.give_up()
    settle({ kind = "user-not-available" })
  end

  local title, lines, filetype = M.describe(request)
  title = "May the agent " .. title

  local function select()
    local choices = { ONCE, REJECT, EXPLAIN }
    if request.canOfferSessionApproval ~= false and request.kind ~= "hook" then
      table.insert(choices, 2, SESSION)
    end
    if question.preview and question.preview.hidden_rows > 0 then
      choices[#choices + 1] = LOOK
    end
    vim.ui.select(choices, { prompt = title, kind = "jumpseat_permission" }, function(choice)
      if question.closed then
        return
      end
      if choice == ONCE then
        settle({ kind = "approve-once" })
      elseif choice == SESSION then
        settle({ kind = "approve-for-session" })
      elseif choice == EXPLAIN then
        vim.ui.input({ prompt = "What should it do instead? " }, function(text)
          local feedback = text and vim.trim(text) or ""
          settle({ kind = "reject", feedback = feedback ~= "" and feedback or nil })
        end)
      elseif choice == LOOK then
        question.preview:enter(function()
          if not question.closed then
            select()
          end
        end)
      else
        settle({ kind = "reject" })
      end
    end)
  end

  function question.show()
    if #lines > 0 then
      question.preview = preview(title, lines, filetype)
    end
    -- A `vim.ui.select` that blocks would be seen before the preview.
    vim.cmd.redraw()
    select()
  end

  add(question)
end

--- A question of the model: choices, or a line of text.
---@param session table
---@param params {question: string, choices: string[]?, allowFreeform: boolean?}
---@param reply fun(result: table?, problem: string?)
function M.ask_user(session, params, reply)
  local question = { session = session }
  local OTHER = "Something else ..."

  local function settle(answer, freeform)
    if not close(question) then
      return
    end
    if answer then
      reply({ answer = answer, wasFreeform = freeform })
    else
      reply(nil, "the user did not answer")
    end
  end

  function question.give_up()
    settle(nil)
  end
  function question.withdrawn()
    reply(nil, "the question was withdrawn")
  end

  local prompt = one_line(params.question or "?")
  local function ask_text()
    vim.ui.input({ prompt = prompt .. " " }, function(text)
      settle(text and text ~= "" and text or nil, true)
    end)
  end

  function question.show()
    local choices = vim.list_slice(params.choices or {})
    if #choices == 0 then
      return ask_text()
    end
    if params.allowFreeform ~= false then
      choices[#choices + 1] = OTHER
    end
    vim.ui.select(choices, { prompt = prompt, kind = "jumpseat_question" }, function(choice, index)
      if choice == OTHER and index == #choices then
        ask_text()
      else
        settle(choice, false)
      end
    end)
  end

  add(question)
end

return M
