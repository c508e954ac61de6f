package llm

import (
	"slices"
	"strings"

	"github.com/hako-run/hako/internal/lazyregexp"
)

// rejection is the part of a request that a provider rejects. Its zero value means that the provider names none.
type rejection struct {
	// parameter is the name of a parameter, such as tools[0].function.parameters.
	parameter string
	// tool is the name of a tool as it is sent.
	tool string
	// keyword is a keyword of JSON Schema, which the provider rejects in every tool.
	keyword string
	// tools reports whether the model takes no tools at all.
	tools bool
}

// explain records the provider's words and what it rejects. Only names are added to Text, because providers may quote
// the conversation in their words.
func (e *Error) explain(words, parameter string) {
	e.words = words
	if e.Kind != Invalid {
		return
	}
	e.rejected = findRejection(words, parameter)
	switch r := &e.rejected; {
	case r.tools:
		e.Text = "the model, or its server as configured, does not support tools: choose a model that does, " +
			"or turn tool calls on in the server"
	case r.keyword != "":
		e.Text += ": it rejects the keyword " + r.keyword + " in schemas of tools"
	case r.tool != "":
		e.Text += ": it rejects the tool " + r.tool
	case r.parameter != "":
		e.Text += ": it rejects the parameter " + r.parameter
	case words != "" && e.Status != 404:
		e.Text += ": its words are in the log at level debug"
	}
}

// Forms in which messages name what they reject.
var (
	// parameterName matches parameter names such as tools[0].function.parameters.
	parameterName = lazyregexp.New(`^[a-z_]{1,40}([.\[][a-z0-9_\]]{1,40}){0,8}:?$`)
	// Gemini: Unknown name "const" at 'tools[0].function_declarations[5].parameters': Cannot find field.
	unknownKeyword = lazyregexp.New(`Unknown name "([$a-zA-Z]{1,40})" at '[^']{0,200}\.parameters`)
	// Gemini has one tool with all functions.
	functionIndex = lazyregexp.New(`function_?[dD]eclarations(?:\[|\.)(\d{1,4})`)
	toolIndex     = lazyregexp.New(`\btools(?:\[|\.)(\d{1,4})`)
	// OpenAI and others: Invalid schema for function 'get_weather'.
	namedFunction = lazyregexp.New(`\bfunction '([a-zA-Z0-9_-]{1,128})'`)
	// word matches names of parameters.
	word = lazyregexp.New(`[a-z_]{1,40}`)
)

// noTools are phrases of messages that say that a model, or its server, takes no tools.
var noTools = []string{
	"does not support tools", "doesn't support tools", "not support function call", "support tool use",
	"tools are not supported", "tool use is not supported", "tool calling is not supported",
	"function calling is not supported", "tool choice requires", // vLLM without a parser for calls
}

// findRejection returns what a message rejects. parameter is the parameter that the provider names, or empty.
func findRejection(words, parameter string) rejection {
	lower := strings.ToLower(words)
	if parameter != deferLoading && slices.ContainsFunc(noTools, func(phrase string) bool { return strings.Contains(lower, phrase) }) {
		return rejection{tools: true}
	}
	if match := unknownKeyword().FindStringSubmatch(words); match != nil && !necessary[match[1]] {
		return rejection{keyword: match[1]}
	}
	if parameterName().MatchString(parameter) {
		return rejection{parameter: strings.TrimSuffix(parameter, ":")}
	}
	if match := functionIndex().FindStringSubmatch(words); match != nil {
		return rejection{parameter: "tools[" + match[1] + "]"}
	}
	if match := toolIndex().FindStringSubmatch(words); match != nil {
		return rejection{parameter: "tools[" + match[1] + "]"}
	}
	if match := namedFunction().FindStringSubmatch(words); match != nil {
		return rejection{tool: match[1]}
	}
	for _, name := range word().FindAllString(words, -1) {
		if optional[name] && strings.Contains(name, "_") {
			return rejection{parameter: name}
		}
	}
	return rejection{}
}

// necessary are the keywords without which a schema does not say what the arguments are.
var necessary = map[string]bool{"type": true, "properties": true, "items": true, "required": true, "description": true}
