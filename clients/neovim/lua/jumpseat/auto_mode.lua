--- A model that is rate limited: whether its provider may choose another one.

local questions = require("jumpseat.questions")

local M = {}

--- The name under which the question of a session is withdrawn; there is never more than one.
M.ID = "auto mode"

local CHOICES = { "yes", "yes_always", "no" }
local WORDS = {
  yes = "Yes, for now",
  yes_always = "Yes, and from now on in this session",
  no = "No, try it again",
}

--- Ask whether the turn is to go on with another model.
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
    vim.ui.select(CHOICES, {
      prompt = ("%sThe model is rate limited%s. Let its provider choose another?"):format(session.prefix(), code),
      kind = "jumpseat_auto_mode",
      format_item = function(choice)
        return WORDS[choice]
      end,
    }, function(choice)
      settle(choice or "no")
    end)
  end

  questions.add(question)
end

return M
