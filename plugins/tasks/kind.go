package main

import (
	"context"
	"crypto/rand"
	"strings"

	"github.com/hako-run/hako/pdk/pdksql"
)

// kind is a sort of record: how its ids begin, the table that holds it, its names, the tool that shows which there are,
// and the argument that this tool needs, if any.
type kind struct{ prefix, table, en, ja, tool, argument string }

// list names the tool in both languages. Models read it, and people who type the tool's name in a terminal: so it is no
// call in the syntax of some language.
func (k kind) list() (en, ja string) {
	if k.argument == "" {
		return "the tool " + k.tool, "ツール " + k.tool
	}
	return "the tool " + k.tool + " with " + k.argument, "ツール " + k.tool + "（" + k.argument + " を指定）"
}

var (
	agents   = kind{"agt", "agents", "agent", "エージェント", "list_agents", ""}
	projects = kind{"proj", "projects", "project", "プロジェクト", "list_projects", ""}
	tasks    = kind{"task", "tasks", "task", "タスク", "list_tasks", "project_id"}
	handoffs = kind{"hnd", "handoffs", "hand-off", "ハンドオフ", "get_pending_handoffs", ""}
	contexts = kind{"ctx", "contexts", "record", "記録", "get_task_context", "task_id"}
)

// unknown is the refusal of an id that no record has, or has any more.
func (k kind) unknown(ctx context.Context, id string) error {
	if err := gone(ctx, id); err != nil {
		return err
	}
	en, ja := k.list()
	for _, other := range []kind{agents, projects, tasks, handoffs, contexts} {
		if other != k && strings.HasPrefix(id, other.prefix+"_") {
			return refuse("%[1]q begins like the ids of %[4]ss, and those of %[6]ss begin with %[2]s_: %[3]s shows which there are",
				"%[1]q は%[5]sの ID の形をしています。%[7]sの ID は %[2]s_ で始まります。%[8]s で確認してください",
				id, k.prefix, en, other.en, other.ja, k.en, k.ja, ja)
		}
	}
	return refuse("there is no %[3]s %[1]q: %[2]s shows which there are", "%[4]s %[1]q はありません。%[5]s で確認してください",
		id, en, k.en, k.ja, ja)
}

// check refuses an id that no record has. An empty one stands for none and is not looked for.
func (k kind) check(ctx context.Context, id string) error {
	if id == "" {
		return nil
	}
	rows, err := pdksql.Query(ctx, "SELECT 1 FROM "+k.table+" WHERE id = ?", id)
	if err == nil && len(rows.Values) == 0 {
		err = k.unknown(ctx, id)
	}
	return err
}

// one returns the record that query finds for the id, its first argument.
func one[T any](ctx context.Context, k kind, query, id string) (*T, error) {
	rows, err := pdksql.Select[T](ctx, query, id)
	if err != nil {
		return nil, err
	}
	if len(rows) == 0 {
		return nil, k.unknown(ctx, id)
	}
	return &rows[0], nil
}

// random draws the part of an id that is not its prefix: 50 bits.
var random = func() string { return strings.ToLower(rand.Text()[:10]) }

// maxDraws bounds the ids that are drawn until one is free.
const maxDraws = 5

// add inserts a record with values under id, or under a new one if id is empty, and returns its id. The statement's
// first parameter is the id, and it does nothing where that is taken.
func (k kind) add(ctx context.Context, id, statement string, values ...any) (string, error) {
	for range maxDraws {
		candidate := id
		if id == "" {
			candidate = k.prefix + "_" + random()
		}
		result, err := pdksql.Exec(ctx, statement+" ON CONFLICT (id) DO NOTHING",
			append([]any{candidate}, values...)...)
		if err != nil || result.Changes > 0 {
			return candidate, err
		}
		if id != "" {
			return "", refuse("%[2]s %[1]s is there already: use it, or leave the id out to get a new one",
				"%[3]s %[1]s は既にあります。それを使うか、ID を省略して新しい ID を割り当ててください", id, k.en, k.ja)
		}
	}
	return "", refuse("no free id was found for the %[1]s: try again", "%[2]sの新しい ID を割り当てられませんでした。もう一度試してください", k.en,
		k.ja)
}

// startingWith returns the first ids that begin with prefix, one more than a completion may have.
func (k kind) startingWith(ctx context.Context, prefix string) ([]string, error) {
	rows, err := pdksql.Query(ctx,
		"SELECT id FROM "+k.table+" WHERE id >= ?1 AND id < ?1 || char(1114111) ORDER BY id LIMIT 101", prefix)
	if err != nil {
		return nil, err
	}
	ids := make([]string, 0, len(rows.Values))
	for _, row := range rows.Values {
		if id, ok := row[0].(string); ok {
			ids = append(ids, id)
		}
	}
	return ids, nil
}
