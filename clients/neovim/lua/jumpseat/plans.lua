--- Approval of the model's plans.

local questions = require("jumpseat.questions")

local M = {}

local EXPLAIN = "Reject and explain"
local VIEW = "View all of it"
local LABELS = {
  interactive = "Carry it out interactively",
  autopilot = "Carry it out on autopilot",
  exit_only = "Leave plan mode and wait",
}

--- Ask the user to approve a plan.
---@param session table
---@param params {summary: string?, planContent: string?, actions: string[]?, recommendedAction: string?}
---@param reply fun(result: table?, problem: string?)
function M.ask(session, params, reply)
  local question = { session = session }

  local function settle(result)
    if questions.close(question) then
      reply(result)
    end
  end

  function question.give_up()
    settle({ approved = false })
  end
  function question.withdrawn()
    reply({ approved = false })
  end

  local choices = {}
  for _, action in ipairs(params.actions or {}) do
    -- The recommended action comes first; unknown actions are left out.
    if LABELS[action] then
      table.insert(choices, action == params.recommendedAction and 1 or #choices + 1, action)
    end
  end
  if #choices == 0 then
    choices[1] = "interactive"
  end
  choices[#choices + 1] = EXPLAIN

  local function select()
    local prompt = session.prefix() .. "Carry out the plan?"
    local kind = "jumpseat_plan"
    questions.select(question, choices, {
      prompt = prompt,
      kind = kind,
      format_item = function(choice)
        return LABELS[choice] or choice
      end,
    }, function(choice)
      if choice == VIEW then
        question.preview:enter(function()
          if not question.closed then
            select()
          end
        end)
      elseif choice == EXPLAIN then
        questions.input(question, { prompt = "What should be different? " }, function(text)
          local feedback = text and vim.trim(text) or ""
          settle({ approved = false, feedback = feedback ~= "" and feedback or nil })
        end)
      elseif choice then
        settle({ approved = true, selectedAction = choice })
      else
        settle({ approved = false })
      end
    end)
  end

  function question.show()
    local text = vim.trim(params.planContent or "")
    if text == "" then
      text = vim.trim(params.summary or "")
    end
    if text ~= "" then
      local lines = vim.split(text, "\n", { plain = true })
      question.preview = questions.preview("Plan", lines, "markdown")
      if question.preview.hidden_rows > 0 then
        choices[#choices + 1] = VIEW
      end
    end
    select()
  end

  questions.add(question)
end

return M
