package chat

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/hako-run/hako/host/frontend/llm"
)

// Budget bounds the use of models. It is checked before each request, so the last request may exceed it.
type Budget struct {
	// Tokens bounds llm.Usage.Total. Zero means no limit.
	Tokens int
	// Cost bounds the cost in the currency of the prices. Zero means no limit.
	Cost float64
}

// Budgets bound the use per conversation, per person of a tenant and day, and by everybody per day.
type Budgets struct {
	Conversation, User, Day Budget
}

func (b Budgets) any() bool { return b != Budgets{} }

// Use counts tokens and cost.
type Use struct {
	Tokens int64
	Cost   float64
}

// Price returns the cost in brackets, after a space; empty if there is none, as with models without prices.
func (u Use) Price(currency string) string {
	if u.Cost == 0 {
		return ""
	}
	return fmt.Sprintf(" (%.4f %s)", u.Cost, currency)
}

// spent is the use that counts against Budgets, in their order.
type spent [3]Use

// recordUse adds the use of a request. With budgets it is saved at once, for other processes to see; otherwise together
// with the answer.
func (r *run) recordUse(response *llm.Response) error {
	r.answer.Usage = r.answer.Usage.Add(response.Usage)
	r.answer.Cost += response.Cost
	r.unwritten.Tokens += int64(response.Usage.Total())
	r.unwritten.Cost += response.Cost
	if !r.engine.options.Budgets.any() {
		return nil
	}
	used := r.unwritten
	r.unwritten = Use{}
	return r.engine.conversations.changes.write(func(ctx context.Context, tx *sql.Tx) error {
		return add(ctx, tx, r.place, r.day, r.caller.User, used)
	})
}

func add(ctx context.Context, tx *sql.Tx, p place, day, person string, used Use) error {
	if used == (Use{}) {
		return nil
	}
	if _, err := tx.ExecContext(ctx,
		`UPDATE chat_conversation SET tokens = `+sane("tokens")+` + $1, cost = `+sane("cost")+` + $2
			WHERE tenant = $3 AND id = $4`,
		used.Tokens, used.Cost, p.tenant, p.id); err != nil {
		return err
	}
	_, err := tx.ExecContext(ctx, `INSERT INTO chat_use (day, tenant, person, tokens, cost) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (day, tenant, person) DO UPDATE SET
			tokens = `+sane("chat_use.tokens")+` + excluded.tokens, cost = `+sane("chat_use.cost")+` + excluded.cost`,
		day, p.tenant, person, used.Tokens, used.Cost)
	return err
}

// most is counted for use in the store that is no number from zero to most. A budget is then used up, and sums stay
// numbers.
const most = "1000000000000"

// sane is an SQL expression for a column of use, which something else may have written.
func sane(column string) string {
	return `CASE WHEN ` + column + ` BETWEEN 0 AND ` + most + ` THEN ` + column + ` ELSE ` + most + ` END`
}

var useColumns = sane("tokens") + `, ` + sane("cost")

// spent reads the use that counts against the budgets.
func (b *conversationStore) spent(ctx context.Context, p place, person, day string) (s spent, err error) {
	queries := [3]struct {
		text string
		args []any
	}{
		{`SELECT ` + useColumns + ` FROM chat_conversation WHERE tenant = $1 AND id = $2`, []any{p.tenant, p.id}},
		{`SELECT ` + useColumns + ` FROM chat_use WHERE day = $1 AND tenant = $2 AND person = $3`,
			[]any{day, p.tenant, person}},
		{`SELECT COALESCE(SUM(` + sane("tokens") + `), 0), COALESCE(SUM(` + sane("cost") + `), 0.0)
			FROM chat_use WHERE day = $1`, []any{day}},
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

// checkBudgets fails with an *Error if a budget is used up.
func (r *run) checkBudgets(ctx context.Context) error {
	budgets := r.engine.options.Budgets
	if !budgets.any() {
		return nil
	}
	used, err := r.engine.conversations.spent(ctx, r.place, r.turn.Caller.User, r.day)
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

// errBudgets has the causes in the order of Budgets.
var errBudgets = [3]error{
	errors.New("the budget of the conversation is used up"),
	errors.New("the user's budget of the day is used up"),
	errors.New("the budget of the day is used up"),
}

// tomorrow returns the start of the day after t.
func tomorrow(t time.Time) time.Time {
	year, month, day := t.Date()
	return time.Date(year, month, day+1, 0, 0, 0, 0, t.Location())
}
