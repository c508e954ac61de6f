package main

import (
	"slices"
	"strings"
)

// Statuses of a task.
const (
	backlog    = "backlog"     // not planned yet
	todo       = "todo"        // planned
	inProgress = "in_progress" // somebody works on it
	blocked    = "blocked"     // cannot go on
	review     = "review"      // waits for a review
	done       = "done"
	cancelled  = "cancelled" // will not be done
)

// next has the statuses that a task may change to.
var next = map[string][]string{
	backlog:    {todo, inProgress, cancelled},
	todo:       {backlog, inProgress, blocked, cancelled},
	inProgress: {todo, blocked, review, done, cancelled},
	blocked:    {todo, inProgress, cancelled},
	review:     {inProgress, blocked, done, cancelled},
	done:       {inProgress, review},
	cancelled:  {backlog, todo},
}

// closed reports whether a task with this status is out of work.
func closed(status string) bool { return status == done || status == cancelled }

// checkTransition refuses a change of status that next does not list.
func checkTransition(id, from, to string) error {
	allowed := next[from]
	if slices.Contains(allowed, to) {
		return nil
	}
	list := strings.Join(allowed, ", ")
	if i := slices.IndexFunc(allowed, func(via string) bool { return slices.Contains(next[via], to) }); i >= 0 {
		return refuse("task %[1]s is %[2]s and can change to %[4]s, not to %[3]s: call update_task_status(task_id=%[1]q, status=%[5]q) first",
			"タスク %[1]s は %[2]s です。変更できるのは %[4]s で、%[3]s にはできません。先に update_task_status(task_id=%[1]q, status=%[5]q) を呼び出してください",
			id, from, to, list, allowed[i])
	}
	return refuse("task %s is %s and can change to %[4]s, not to %[3]s", "タスク %s は %s です。変更できるのは %[4]s で、%[3]s にはできません",
		id, from, to, list)
}
