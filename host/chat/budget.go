package chat

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/hako-run/hako/host/llm"
)

// Budget bounds what models may use. A turn that begins below it may pass it by its last request.
type Budget struct {
	// Tokens are those read and written, llm.Usage.Total. Zero means no limit.
	Tokens int
	// Cost is in the currency of the prices. Zero means no limit.
	Cost float64
}

// Budgets bound what is used: by a conversation, by a person of a tenant in a day, and by everybody in a day.
type Budgets struct {
	Conversation, User, Day Budget
}

func (b Budgets) any() bool { return b != Budgets{} }

// Use is what models have used.
type Use struct {
	Tokens int64
	Cost   float64
}

// spent is what counts against Budgets, in their order.
type spent [3]Use

// spend adds what a request of the turn has used. Where there are budgets, all processes know of it when it returns; otherwise it is written
// with the answer.
func (r *run) spend(response *llm.Response) error {
	r.answer.Usage = r.answer.Usage.Add(response.Usage)
	r.answer.Cost += response.Cost
	r.unwritten.Tokens += int64(response.Usage.Total())
	r.unwritten.Cost += response.Cost
	if !r.engine.options.Budgets.any() {
		return nil
	}
	used := r.unwritten
	r.unwritten = Use{}
	return r.engine.book.changes.write(func(ctx context.Context, tx *sql.Tx) error {
		return add(ctx, tx, r.place, r.day, r.caller.User, used)
	})
}

func add(ctx context.Context, tx *sql.Tx, p place, day, person string, used Use) error {
	if used == (Use{}) {
		return nil
	}
	if _, err := tx.ExecContext(ctx, `UPDATE chat_conversation SET tokens = tokens + $1, cost = cost + $2 WHERE tenant = $3 AND id = $4`,
		used.Tokens, used.Cost, p.tenant, p.id); err != nil {
		return err
	}
	_, err := tx.ExecContext(ctx, `INSERT INTO chat_use (day, tenant, person, tokens, cost) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (day, tenant, person) DO UPDATE SET tokens = chat_use.tokens + excluded.tokens, cost = chat_use.cost + excluded.cost`,
		day, p.tenant, person, used.Tokens, used.Cost)
	return err
}

// spent reads what counts against the budgets.
func (b *book) spent(ctx context.Context, p place, person, day string) (s spent, err error) {
	queries := [3]struct {
		text string
		args []any
	}{
		{`SELECT tokens, cost FROM chat_conversation WHERE tenant = $1 AND id = $2`, []any{p.tenant, p.id}},
		{`SELECT tokens, cost FROM chat_use WHERE day = $1 AND tenant = $2 AND person = $3`, []any{day, p.tenant, person}},
		{`SELECT COALESCE(SUM(tokens), 0), COALESCE(SUM(cost), 0.0) FROM chat_use WHERE day = $1`, []any{day}},
	}
	err = b.store.View(ctx, func(tx *sql.Tx) error {
		for i, query := range queries {
			err := tx.QueryRowContext(ctx, query.text, query.args...).Scan(&s[i].Tokens, &s[i].Cost)
			if err != nil && !errors.Is(err, sql.ErrNoRows) {
				return err
			}
		}
		return nil
	})
	return s, err
}

// afford fails with an *Error if a budget is used up.
func (r *run) afford(ctx context.Context) error {
	budgets := r.engine.options.Budgets
	if !budgets.any() {
		return nil
	}
	used, err := r.engine.book.spent(ctx, r.place, r.turn.Caller.User, r.day)
	if err != nil {
		return err
	}
	for i, budget := range [3]Budget{budgets.Conversation, budgets.User, budgets.Day} {
		limit := ""
		switch {
		case budget.Tokens > 0 && used[i].Tokens >= int64(budget.Tokens):
			limit = fmt.Sprintf(r.words.tokens, budget.Tokens)
		case budget.Cost > 0 && used[i].Cost >= budget.Cost:
			limit = strconv.FormatFloat(budget.Cost, 'f', -1, 64) + " " + r.engine.options.Currency
		default:
			continue
		}
		when := r.words.starts
		if i > 0 {
			when = r.words.reset(tomorrow(r.started))
		}
		text := fmt.Sprintf(r.words.budgets[i], limit, when)
		return &Error{ReasonBudget, text, errBudgets[i]}
	}
	return nil
}

// errBudgets name the budget that is used up, in the order of Budgets.
var errBudgets = [3]error{
	errors.New("the budget of the conversation is used up"),
	errors.New("the user's budget of the day is used up"),
	errors.New("the budget of the day is used up"),
}

// tomorrow is when the day after t's begins.
func tomorrow(t time.Time) time.Time {
	year, month, day := t.Date()
	return time.Date(year, month, day+1, 0, 0, 0, 0, t.Location())
}
