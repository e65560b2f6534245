-- The configuration of the Neovim under test: the plugin, and the functions that tests/support/neovim.py calls.

vim.opt.runtimepath:prepend(vim.env.TEST_PLUGIN)
vim.o.swapfile = false

questions, answers, notifications = {}, {}, {}

-- Questions take no answer before a person can have seen them.
local waiting, settling

local function when_ready(answer)
  if settling and require("jumpseat.questions").open_questions() > 0 then
    waiting = answer
  else
    vim.schedule(answer)
  end
end

vim.api.nvim_create_autocmd("User", {
  pattern = "JumpseatQuestionReady",
  callback = function()
    local answer = waiting
    waiting, settling = nil, false
    if answer then
      answer()
    end
  end,
})

local function shown(question)
  table.insert(questions, question)
  settling = require("jumpseat.questions").open_questions() > 0
end

local notify = vim.notify
vim.notify = function(message, ...)
  table.insert(notifications, message)
  if vim.env.TEST_REAL_UI then
    notify(message, ...)
  end
end

if not vim.env.TEST_REAL_UI then
  vim.ui.select = function(items, options, choose)
    local texts = vim.tbl_map(options.format_item or tostring, items)
    shown({ prompt = options.prompt, choices = texts, kind = options.kind })
    local function choose_text(answer)
      for index, text in ipairs(texts) do
        if text == answer then
          return choose(items[index], index)
        end
      end
      choose(nil)
    end
    function open_question(answer)
      when_ready(function()
        choose_text(answer)
      end)
    end
    if #answers > 0 then
      open_question(table.remove(answers, 1))
    end
  end
  vim.ui.input = function(options, confirm)
    shown({ prompt = options.prompt, default = options.default })
    local answer = table.remove(answers, 1)
    when_ready(function()
      confirm(answer ~= "" and answer or nil)
    end)
  end
end

if vim.env.TEST_REAL_UI then
  -- No event is seen while Neovim itself waits for a key: a file tells the test that a person has read the question.
  local ready = vim.env.TEST_OPTIONS .. ".ready"
  for _, name in ipairs({ "select", "input" }) do
    local show = vim.ui[name]
    vim.ui[name] = function(...)
      assert(vim.uv.new_timer()):start(700, 0, function()
        vim.uv.fs_close(assert(vim.uv.fs_open(ready, "w", 420)))
      end)
      return show(...)
    end
  end
end

function lines(buf)
  return vim.api.nvim_buf_get_lines(buf, 0, -1, false)
end

function transcript()
  return table.concat(lines(require("jumpseat").chat().transcript.buf), "\n")
end

function winbar(buf)
  local win = vim.fn.bufwinid(buf)
  return vim.api.nvim_eval_statusline(vim.wo[win].winbar, { winid = win, use_winbar = true }).str
end

function press(keys)
  vim.api.nvim_feedkeys(vim.api.nvim_replace_termcodes(keys, true, false, true), "tx", false)
end

function report()
  return { transcript = transcript(), questions = questions, notifications = notifications, messages = vim.fn.execute("messages") }
end

function drive(packed)
  local request = vim.json.decode(vim.base64.decode(packed))
  local outcome = vim.empty_dict()
  local ok, problem = xpcall(function()
    if request["until"] then
      local condition = assert(loadstring("return " .. request["until"]))
      vim.wait(request.wait, function()
        outcome.value = condition(unpack(request.args)) or nil
        return outcome.value ~= nil
      end, 5)
    else
      outcome.value = assert(loadstring(request.code))(unpack(request.args))
    end
  end, debug.traceback)
  if not ok then
    outcome.problem = problem
  end
  return vim.json.encode(outcome)
end

assert(loadstring(vim.env.TEST_BEFORE or ""))()
local options = vim.json.decode(table.concat(vim.fn.readfile(vim.env.TEST_OPTIONS), "\n"))
if test_tools then
  options.tools = test_tools
end
if next(options) then
  require("jumpseat").setup(options)
end
