package slackbot

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/slack-go/slack"

	"github.com/hako-run/hako/host/elicitation"
	"github.com/hako-run/hako/internal/clip"
)

// Bounds of a modal, in characters (docs.slack.dev/reference/block-kit).
const (
	maxModalTitle = 24
	maxLabel      = 150
	maxHint       = 2000
	maxOption     = 75
	maxButton     = 75
	maxInput      = 3000
	longText      = 200 // longer fields have several lines
)

// fieldValue is the action ID of the fields of a modal.
const fieldValue = "value"

// blockOf returns the block ID of the field i of a form.
func blockOf(i int) string { return "field" + strconv.Itoa(i) }

// modal returns the modal for a question with a form.
func modal(id string, q *elicitation.Question, locale string) slack.ModalViewRequest {
	words := wordsFor(locale)
	blocks := []slack.Block{slack.NewSectionBlock(plain(clip.Marked(q.Text(locale), maxQuestion)), nil, nil)}
	for i := range q.Form.Fields {
		blocks = append(blocks, input(i, &q.Form.Fields[i], words))
	}
	return slack.ModalViewRequest{
		Type: slack.VTModal, CallbackID: callbackForm, PrivateMetadata: id,
		Title: plain(short(q.Server, maxModalTitle)), Submit: plain(words.send), Close: plain(words.close),
		Blocks: slack.Blocks{BlockSet: blocks},
	}
}

// input returns the block of one field.
func input(i int, field *elicitation.Field, words *words) slack.Block {
	var hint *slack.TextBlockObject
	if field.Description != "" {
		hint = plain(short(field.Description, maxHint))
	}
	block := slack.NewInputBlock(blockOf(i), plain(short(field.Label(), maxLabel)), hint, element(field, words))
	return block.WithOptional(!field.Required)
}

// element returns the input element of a field. The value of an option is its index, because Slack limits the length of
// values.
func element(field *elicitation.Field, words *words) slack.BlockElement {
	switch field.Kind {
	case elicitation.Boolean:
		yes, no := choice("true", words.yes), choice("false", words.no)
		e := slack.NewRadioButtonsBlockElement(fieldValue, yes, no)
		switch field.Default {
		case true:
			e.InitialOption = yes
		case false:
			e.InitialOption = no
		}
		return e
	case elicitation.Choice:
		e := slack.NewOptionsSelectBlockElement(slack.OptTypeStatic, nil, fieldValue, choices(field)...)
		if i := slices.IndexFunc(field.Options,
			func(o elicitation.Option) bool { return o.Value == field.Default }); i >= 0 {
			e.InitialOption = e.Options[i]
		}
		return e
	case elicitation.Choices:
		e := slack.NewOptionsMultiSelectBlockElement(slack.MultiOptTypeStatic, nil, fieldValue, choices(field)...)
		proposed, _ := field.Default.([]any)
		for i, o := range field.Options {
			if slices.Contains(proposed, any(o.Value)) {
				e.InitialOptions = append(e.InitialOptions, e.Options[i])
			}
		}
		return e
	}
	e := slack.NewPlainTextInputBlockElement(nil, fieldValue)
	if field.Default != nil {
		e.InitialValue = short(fmt.Sprint(field.Default), maxInput)
	}
	_, most := field.Lengths()
	e.Multiline = field.Kind == elicitation.Text && field.Format == "" && most > longText && most < maxInput
	return e
}

func choice(value, text string) *slack.OptionBlockObject {
	return slack.NewOptionBlockObject(value, plain(short(text, maxOption)), nil)
}

func choices(field *elicitation.Field) (list []*slack.OptionBlockObject) {
	for i, o := range field.Options {
		list = append(list, choice(strconv.Itoa(i), o.Title))
	}
	return list
}

// short cuts text to limit characters, which Slack counts in UTF-16.
func short(text string, limit int) string {
	n := 0
	for i, r := range text {
		if n += 1; r > 0xffff {
			n++
		}
		if n > limit-1 {
			return text[:i] + "…"
		}
	}
	return text
}

// written returns the values that a person entered into a modal, or error texts by block. It does not rely on Slack's
// validation.
func written(form *elicitation.Form, values map[string]map[string]slack.BlockAction,
	locale string) (content map[string]any, problems map[string]string) {
	content, problems = map[string]any{}, map[string]string{}
	for i := range form.Fields {
		field := &form.Fields[i]
		value, err := read(field, values[blockOf(i)][fieldValue])
		if problem, ok := errors.AsType[*elicitation.Problem](err); ok {
			problems[blockOf(i)] = problem.Text(locale)
		} else if value != nil {
			content[field.Name] = value
		}
	}
	return content, problems
}

// read returns the value of a field, or nil if an optional field is empty.
func read(field *elicitation.Field, a slack.BlockAction) (any, error) {
	option := func(o slack.OptionBlockObject) string {
		if i, err := strconv.Atoi(o.Value); err == nil && i >= 0 && i < len(field.Options) {
			return field.Options[i].Value
		}
		return ""
	}
	typed := a.Value
	switch field.Kind {
	case elicitation.Boolean:
		typed = a.SelectedOption.Value
	case elicitation.Choice:
		if a.SelectedOption.Value != "" {
			return field.Check(option(a.SelectedOption))
		}
	case elicitation.Choices:
		var list []any
		for _, o := range a.SelectedOptions {
			list = append(list, option(o))
		}
		if len(list) == 0 && !field.Required {
			return nil, nil
		}
		return field.Check(list)
	}
	if typed == "" && !field.Required {
		return nil, nil
	}
	return field.Read(typed)
}

// refused keeps the modal open and shows text below its first field.
func refused(text string) any {
	return slack.NewErrorsViewSubmissionResponse(map[string]string{blockOf(0): text})
}
