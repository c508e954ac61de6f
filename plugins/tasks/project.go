package main

import (
	"context"

	"github.com/hako-run/hako/pdk/pdksql"
)

type project struct {
	ID          string `json:"project_id"`
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	OpenTasks   int    `json:"open_tasks"`
	CreatedAt   string `json:"created_at"`
}

// projectDetail is a project with the number of its tasks by status.
type projectDetail struct {
	project
	TaskCounts map[string]int `json:"task_counts"`
}

// projectColumns are those of a list; descriptions are in details alone.
const projectColumns = `id AS project_id, name, created_at,
	(SELECT count(*) FROM tasks WHERE project_id = projects.id AND status NOT IN ('done', 'cancelled')) AS open_tasks`

const selectProject = "SELECT description, " + projectColumns + " FROM projects WHERE id = ?"

func projectByID(ctx context.Context, id string) (*projectDetail, error) {
	p, err := one[project](ctx, projects, selectProject, id)
	if err != nil {
		return nil, err
	}
	type count struct {
		Status string `json:"status"`
		Tasks  int    `json:"tasks"`
	}
	counts, err := pdksql.Select[count](ctx,
		"SELECT status, count(*) AS tasks FROM tasks WHERE project_id = ? GROUP BY status", id)
	detail := &projectDetail{*p, map[string]int{}}
	for _, c := range counts {
		detail.TaskCounts[c.Status] = c.Tasks
	}
	return detail, err
}

type projectArgs struct {
	ProjectID string `json:"project_id"`
}

func getProject(ctx context.Context, in projectArgs) (*projectDetail, error) {
	return projectByID(ctx, in.ProjectID)
}

type projectPage struct {
	extent
	Projects []project `json:"projects"`
}

func listProjects(ctx context.Context, in paging) (out projectPage, err error) {
	err = pdksql.ReadTransaction(ctx, func(ctx context.Context) (err error) {
		out.Projects, out.extent, err = list[project](ctx, in, projectColumns, "projects", "seq")
		return err
	})
	return out, err
}

type newProject struct {
	ID          string `json:"project_id"`
	Name        string `json:"name"`
	Description string `json:"description"`
}

func createProject(ctx context.Context, in newProject) (*project, error) {
	id, err := projects.add(ctx, in.ID, "INSERT INTO projects (id, name, description, created_at) VALUES (?, ?, ?, ?)",
		in.Name, in.Description, now())
	if err != nil {
		return nil, err
	}
	changed(ctx, "project://"+id)
	return one[project](ctx, projects, selectProject, id)
}
