--- Elicitation: forms that MCP servers request, filled in field by field, and URLs to open.
--- Supports the flat schemas of the protocol; the session sends the answers.

local questions = require("jumpseat.questions")

local M = {}

local one_line = questions.one_line

--- Return the choices of a field as {value, label}; nil if it has none.
local function choices_of(field)
  local found = {}
  for index, value in ipairs(field.enum or {}) do
    found[#found + 1] = { value, (field.enumNames or {})[index] or value }
  end
  for _, one in ipairs(field.oneOf or field.anyOf or {}) do
    found[#found + 1] = { one.const, one.title or one.const }
  end
  return #found > 0 and found or nil
end

--- Parse a number; nil if invalid, or fractional for an integer.
local function number_of(text, kind)
  local number = tonumber(text)
  return number and (kind == "number" or number % 1 == 0) and number or nil
end

--- Validate an input; returns an error message, or nil if it is a valid value of the field.
---@param field table
---@param text string
---@param required boolean
---@return string?
function M.problem(field, text, required)
  if vim.trim(text) == "" then
    return required and "required" or nil
  elseif field.type == "integer" or field.type == "number" then
    local number = number_of(text, field.type)
    if not number then
      return field.type == "integer" and "expected an integer" or "expected a number"
    elseif field.minimum and number < field.minimum then
      return ("expected at least %s"):format(field.minimum)
    elseif field.maximum and number > field.maximum then
      return ("expected at most %s"):format(field.maximum)
    end
    return nil
  end
  local length = vim.fn.strchars(text)
  if field.minLength and length < field.minLength then
    return ("expected at least %d characters"):format(field.minLength)
  elseif field.maxLength and length > field.maxLength then
    return ("expected at most %d characters"):format(field.maxLength)
  end
end

--- Return the names of the fields, required ones first and in the order of `required`, others sorted: decoding a JSON
--- object loses its order.
local function names_of(schema)
  local needed = {}
  for place, name in ipairs(schema.required or {}) do
    needed[name] = place
  end
  local names = vim.tbl_keys(schema.properties or {})
  table.sort(names, function(a, b)
    local x, y = needed[a] or math.huge, needed[b] or math.huge
    return x < y or (x == y and a < b)
  end)
  return names, needed
end

local NONE, DONE = {}, {}

--- Ask for the value of a field and call `done(value)`: NONE if it is left empty, nil if the form is cancelled.
local function ask_field(question, name, field, required, done)
  local label = one_line(field.title or name)
  if field.description then
    label = label .. ": " .. one_line(field.description)
  end

  local function select(choices, format, chosen)
    questions.select(question, choices, { prompt = label, kind = "jumpseat_form", format_item = format }, chosen)
  end

  if field.type == "array" then
    local values = choices_of(field.items or {}) or {}
    local selected = {}
    for _, value in ipairs(field.default or {}) do
      selected[value] = true
    end
    local function again()
      local choices = vim.list_slice(values)
      choices[#choices + 1] = DONE
      select(choices, function(choice)
        return choice == DONE and "Done" or (selected[choice[1]] and "[x] " or "[ ] ") .. one_line(choice[2])
      end, function(choice)
        if choice == nil then
          return done(nil)
        elseif choice ~= DONE then
          selected[choice[1]] = not selected[choice[1]] or nil
          return again()
        end
        local content = {}
        for _, one in ipairs(values) do
          if selected[one[1]] then
            content[#content + 1] = one[1]
          end
        end
        done(content)
      end)
    end
    return again()
  end

  local choices = field.type == "boolean" and { { true, "Yes" }, { false, "No" } } or choices_of(field)
  if choices then
    choices = vim.list_slice(choices)
    -- The default comes first.
    for index, one in ipairs(choices) do
      if one[1] == field.default then
        table.insert(choices, 1, table.remove(choices, index))
        break
      end
    end
    if not required then
      choices[#choices + 1] = { NONE, "Leave empty" }
    end
    return select(choices, function(choice)
      return one_line(choice[2])
    end, function(choice)
      done(choice and choice[1])
    end)
  end

  local function ask_text(problem, default)
    local prompt = problem and ("%s (%s): "):format(label, problem) or label .. ": "
    questions.input(question, { prompt = prompt, default = default }, function(text)
      if text == nil then
        return done(nil)
      end
      local failure = M.problem(field, text, required)
      if failure then
        ask_text(failure, text)
      elseif vim.trim(text) == "" then
        done(NONE)
      else
        done(field.type ~= "string" and number_of(text, field.type) or text)
      end
    end)
  end
  ask_text(nil, field.default ~= nil and tostring(field.default) or nil)
end

--- Show a form or a URL to the user.
---@param session table
---@param asked {requestId: string, message: string, requestedSchema: table?, elicitationSource: string?, url: string?}
---@param answer fun(result: {action: "accept"|"decline"|"cancel", content: table?})
function M.ask(session, asked, answer)
  local question = { session = session, id = asked.requestId }

  local function settle(action, content)
    if questions.close(question) then
      answer({ action = action, content = content })
    end
  end

  function question.give_up()
    settle("cancel")
  end

  local schema = asked.requestedSchema or {}
  local names, needed = names_of(schema)
  local content = vim.empty_dict()

  local function fill(place)
    local name = names[place]
    if not name then
      return settle("accept", content)
    end
    ask_field(question, name, schema.properties[name], needed[name] ~= nil, function(value)
      if value == nil then
        return settle("cancel")
      elseif value ~= NONE then
        content[name] = value
      end
      fill(place + 1)
    end)
  end

  function question.show()
    local message = asked.message
    if asked.elicitationSource then
      -- The source comes first: no message of a server can pass for one of another source.
      message = ("%s asks: %s"):format(questions.one_line(asked.elicitationSource), message)
    end
    local accept = "Answer"
    if asked.url then
      accept, message = "Open", message .. "\n" .. asked.url
    end
    local prompt = questions.prompt_of(question, "Request", message, "Your answer:")
    questions.select(question, { accept, "Decline" }, { prompt = prompt, kind = "jumpseat_form" }, function(choice)
      if choice == "Decline" then
        settle("decline")
      elseif choice == nil then
        settle("cancel")
      elseif asked.url then
        vim.ui.open(asked.url)
        settle("accept")
      else
        fill(1)
      end
    end)
  end

  questions.add(question)
end

return M
