--- The queue of questions to the user: shown one at a time, never while the user types, and removed when withdrawn.
--- Other modules define the questions and their answers, except for questions of the model, which are defined here.

local M = {}

---@class jumpseat.Question
---@field session table the session that asks
---@field id? string of the request
---@field show fun(self: jumpseat.Question)
---@field give_up fun(self: jumpseat.Question) called if the question cannot be shown
---@field withdrawn? fun(self: jumpseat.Question) called if the question is withdrawn
---@field preview? jumpseat.Preview closed with the question
---@field closed? boolean
---@field shown? boolean

---@type jumpseat.Question[] open questions; the first is on the screen
local queue = {}

--- Return a value as text on one line.
---@param value any
---@return string
function M.one_line(value)
  local text = type(value) == "string" and value or vim.json.encode(value)
  return (text:gsub("%s+", " "))
end

-- The preview ------------------------------------------------------------------------------------------------------

---@class jumpseat.Preview
local Preview = {}
Preview.__index = Preview

-- Least width of a preview to keep the chat uncovered. Diffs are not wrapped for that.
local LEAST_COLUMNS = 40

--- Return the first column and the width of a window beside the chat that is wide enough, else of the whole editor.
local function place_beside_chat(least)
  for _, win in ipairs(vim.api.nvim_tabpage_list_wins(0)) do
    local is_chat = vim.startswith(vim.bo[vim.api.nvim_win_get_buf(win)].filetype, "jumpseat")
    local room = vim.api.nvim_win_get_width(win)
    if not is_chat and vim.api.nvim_win_get_config(win).relative == "" and room >= least + 4 then
      return vim.api.nvim_win_get_position(win)[2], room
    end
  end
  return 0, vim.o.columns
end

--- Show lines in a floating window, above the rows that `vim.ui.select` uses.
---@param title string
---@param lines string[]
---@param filetype string
---@return jumpseat.Preview
function M.preview(title, lines, filetype)
  local buf = vim.api.nvim_create_buf(false, true)
  vim.api.nvim_buf_set_lines(buf, 0, -1, false, lines)
  vim.bo[buf].modifiable = false
  vim.bo[buf].bufhidden = "wipe"
  local widest = math.max(18, vim.api.nvim_strwidth(title) + 2)
  for _, line in ipairs(lines) do
    widest = math.max(widest, vim.api.nvim_strwidth(line))
  end
  local least = filetype == "diff" and widest or math.min(widest, LEAST_COLUMNS)
  local column, columns = place_beside_chat(least + 1)
  local width = math.min(widest + 1, columns - 4)
  local place = {
    relative = "editor",
    row = 0,
    col = column + math.floor((columns - width) / 2) - 1,
    width = width,
    height = 1,
    style = "minimal",
    border = "rounded",
    title = " " .. title .. " ",
    title_pos = "center",
    noautocmd = true,
  }
  local win = vim.api.nvim_open_win(buf, false, place)
  -- Long lines wrap: nothing that the user approves may be hidden beyond the edge.
  vim.wo[win][0].wrap = true
  vim.wo[win][0].linebreak = filetype ~= "diff"
  if filetype ~= "" then
    vim.bo[buf].syntax = filetype
  end
  local rows, room = vim.api.nvim_win_text_height(win, {}).all, math.max(3, vim.o.lines - 12)
  place.noautocmd = nil
  place.height = math.min(rows, room)
  place.row = math.floor((room - place.height) / 2)
  vim.api.nvim_win_set_config(win, place)
  -- A `vim.ui.select` that blocks would prevent the window from being drawn.
  vim.cmd.redraw()
  return setmetatable({ win = win, buf = buf, hidden_rows = rows - place.height }, Preview)
end

--- Return the prompt of a question: `text` if it is short, else `instead`, with `text` in a preview.
---@param question jumpseat.Question
---@param title string
---@param text string
---@param instead string
---@return string
function M.prompt_of(question, title, text, instead)
  local short = question.session.prefix() .. M.one_line(text)
  if not vim.trim(text):find("\n") and vim.api.nvim_strwidth(short) < vim.o.columns - 16 then
    return short
  end
  local lines = vim.split(vim.trim(text), "\n", { plain = true })
  question.preview = M.preview(question.session.prefix() .. title, lines, "")
  return instead
end

function Preview:close()
  if vim.api.nvim_win_is_valid(self.win) then
    vim.api.nvim_win_close(self.win, true)
  end
end

--- Move the cursor into the preview; `done` is called when the user leaves it.
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

-- Queue ------------------------------------------------------------------------------------------------------------

local function typing()
  return vim.fn.mode():sub(1, 1) ~= "n" or vim.fn.getcmdwintype() ~= ""
end

local waiting_for_normal_mode = false

-- Milliseconds between two questions, and from a question to its answer: a key may have been meant for what was there
-- before.
local PAUSE_MS = 600
local closed_at = -PAUSE_MS

local function now()
  vim.uv.update_time()
  return vim.uv.now()
end

--- Show the first question in normal mode: a key typed for a text must not approve anything.
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
  local wait = PAUSE_MS - (now() - closed_at)
  if wait > 0 then
    vim.defer_fn(show_next, wait)
    return
  end
  question.shown = true
  -- A `vim.ui.select` that blocks would prevent the bar from being updated.
  vim.cmd.redraw()
  local ok, problem = xpcall(question.show, debug.traceback, question)
  if not ok then
    vim.notify("jumpseat: cannot show a question: " .. problem, vim.log.levels.ERROR)
    question:give_up()
  end
end

local function announce(pattern, session)
  vim.api.nvim_exec_autocmds("User", { pattern = pattern, data = { session = session.id } })
end

--- Call `show`, which calls back with the answer of the user, and pass the answer on to `done`. A question that is
--- answered as soon as it appears is shown again instead, unless it is dismissed. `done` is not called if the question is
--- closed.
local function ask(question, show, done)
  local shown_at = now()
  local answered = false
  vim.defer_fn(function()
    if not question.closed and not answered then
      announce("JumpseatQuestionReady", question.session)
    end
  end, PAUSE_MS)
  show(function(answer, index)
    if question.closed or answered then
      return
    end
    answered = true
    local wait = PAUSE_MS - (now() - shown_at)
    if answer == nil or wait <= 0 then
      return done(answer, index)
    end
    vim.notify("jumpseat: nothing is answered yet: the question has only just appeared")
    question.shown = false
    question.show = function()
      ask(question, show, done)
    end
    vim.defer_fn(show_next, wait)
  end)
end

--- Let the user choose in a question, like `vim.ui.select`, but not before they can have seen it.
---@param question jumpseat.Question
---@param choices any[]
---@param options table
---@param choose fun(choice: any, index: integer?)
function M.select(question, choices, options, choose)
  ask(question, function(answered)
    vim.ui.select(choices, options, answered)
  end, choose)
end

--- Let the user enter a line in a question, like `vim.ui.input`, but not before they can have seen it.
---@param question jumpseat.Question
---@param options table
---@param confirm fun(text: string?)
function M.input(question, options, confirm)
  ask(question, function(answered)
    vim.ui.input(options, answered)
  end, confirm)
end

--- Add a question to the queue.
---@param question jumpseat.Question
function M.add(question)
  queue[#queue + 1] = question
  question.session.asking = (question.session.asking or 0) + 1
  question.session.on_change()
  announce("JumpseatQuestion", question.session)
  vim.schedule(show_next)
end

--- Remove a question from the queue and the screen; returns false if it was closed already.
---@param question jumpseat.Question
function M.close(question)
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
  if question.shown then
    closed_at = now()
  end
  question.session.asking = question.session.asking - 1
  question.session.on_change()
  vim.schedule(show_next)
  return true
end

--- Withdraw all questions of a session, or the one with this id.
---@param session table
---@param id? string
function M.withdraw(session, id)
  for _, question in ipairs(vim.list_slice(queue)) do
    if question.session == session and (id == nil or question.id == id) then
      if M.close(question) and question.withdrawn then
        question:withdrawn()
      end
    end
  end
end

--- Return the number of open questions.
function M.open_questions()
  return #queue
end

-- Questions of the model ------------------------------------------------------------------------------------------

--- Ask the user a question of the model, with choices, a line of text, or both.
---@param session table
---@param params {question: string, choices: string[]?, allowFreeform: boolean?}
---@param reply fun(result: table?, problem: string?)
function M.ask_user(session, params, reply)
  local question = { session = session }
  local OTHER = "Other ..."

  local function settle(answer, freeform)
    if not M.close(question) then
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

  local prompt
  local function ask_text()
    M.input(question, { prompt = prompt .. " " }, function(text)
      settle(text and text ~= "" and text or nil, true)
    end)
  end

  function question.show()
    prompt = M.prompt_of(question, "The agent asks", params.question or "?", "Your answer:")
    local choices = vim.list_slice(params.choices or {})
    if #choices == 0 then
      return ask_text()
    end
    if params.allowFreeform ~= false then
      choices[#choices + 1] = OTHER
    end
    M.select(question, choices, { prompt = prompt, kind = "jumpseat_question" }, function(choice, index)
      if choice == OTHER and index == #choices then
        ask_text()
      else
        settle(choice, false)
      end
    end)
  end

  M.add(question)
end

return M
