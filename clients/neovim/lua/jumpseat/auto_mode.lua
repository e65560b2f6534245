--- Asks whether the provider may choose another model in place of a rate-limited one.

local questions = require("jumpseat.questions")

local M = {}

--- Id of the question; a session has at most one.
M.ID = "auto mode"

local CHOICES = { "yes", "yes_always", "no" }
local LABELS = {
  yes = "Yes, this time",
  yes_always = "Yes, for the rest of this session",
  no = "No, retry the same model",
}

--- Ask whether to continue the turn with another model.
---@param session table
---@param params {errorCode: string?}
---@param reply fun(result: table?, problem: string?)
function M.ask(session, params, reply)
  local question = { session = session, id = M.ID }

  local function settle(response)
    if questions.close(question) then
      reply({ response = response })
    end
  end

  function question.give_up()
    settle("no")
  end
  function question.withdrawn()
    reply({ response = "no" })
  end

  function question.show()
    local code = params.errorCode and (" (%s)"):format(questions.one_line(params.errorCode)) or ""
    questions.select(question, CHOICES, {
      prompt = ("%sThe model is rate limited%s. Let its provider choose another?"):format(session.prefix(), code),
      kind = "jumpseat_auto_mode",
      format_item = function(choice)
        return LABELS[choice]
      end,
    }, function(choice)
      settle(choice or "no")
    end)
  end

  questions.add(question)
end

return M
