package judge

import (
	"slices"
	"strings"
)

// gitReaches is why subcommands of git that use a remote repository are asked about.
const gitReaches = "it reaches another repository, and can start programs to do so"

// Options that subcommands of git share.
const (
	gitDiff = ` p|u|patch s|no-patch U|unified= W|function-context raw patch-with-raw patch-with-stat numstat
		shortstat dirstat? X? cumulative dirstat-by-file? check summary name-only name-status stat? stat-width=
		stat-name-width= stat-graph-width= stat-count= compact-summary binary full-index color? ws-error-highlight=
		abbrev? src-prefix= dst-prefix= line-prefix= prefix default-prefix inter-hunk-context= output-indicator-new=
		output-indicator-old= output-indicator-context= B|break-rewrites? M|find-renames? D|irreversible-delete
		C|find-copies? find-copies-harder renames rename-empty follow minimal w|ignore-all-space
		b|ignore-space-change ignore-space-at-eol ignore-cr-at-eol ignore-blank-lines I|ignore-matching-lines=
		indent-heuristic patience histogram diff-algorithm= anchored= word-diff? word-diff-regex= color-words?
		color-moved? color-moved-ws= relative? a|text exit-code q|quiet !ext-diff !textconv ignore-submodules?
		submodule? ita-invisible-in-index ita-visible-in-index S= G= pickaxe-all pickaxe-regex O= rotate-to=
		skip-to= find-object= diff-filter= output= l= R z`
	gitRevisions = ` n|max-count= skip= since|after= until|before= since-as-filter= author= committer= grep=
		grep-reflog= all-match invert-grep i|regexp-ignore-case basic-regexp E|extended-regexp F|fixed-strings
		P|perl-regexp remove-empty merges min-parents= max-parents= first-parent not all branches? tags? remotes?
		glob= exclude= exclude-hidden= reflog ignore-missing stdin cherry-mark cherry-pick left-only right-only
		cherry g|walk-reflogs merge boundary simplify-by-decoration show-pulls full-history dense sparse
		simplify-merges ancestry-path? topo-order date-order author-date-order reverse pretty? format= abbrev-commit
		oneline encoding= notes? show-notes? standard-notes !show-signature relative-date date= parents children
		left-right graph show-linear-break? m c cc combined-all-paths t source use-mailmap mailmap clear-decorations
		decorate-refs= decorate-refs-exclude= decorate? L= no-walk? log-size full-diff`
	gitPick = ` quit continue abort skip cleanup= n|no-commit commit !e|edit s|signoff m|mainline=
		rerere-autoupdate !strategy= X|strategy-option= !S|gpg-sign?`
	gitParse = ` abbrev-ref? verify q|quiet sq short? not symbolic symbolic-full-name all branches? tags? remotes?
		glob= exclude= disambiguate= local-env-vars path-format= git-dir git-common-dir absolute-git-dir
		is-inside-git-dir is-inside-work-tree is-bare-repository is-shallow-repository resolve-git-dir= git-path=
		show-cdup show-prefix show-toplevel show-superproject-working-tree shared-index-path show-object-format?
		since= after= until= before= default= prefix= revs-only flags no-revs no-flags`
	gitFetch = ` v|verbose q|quiet all set-upstream a|append atomic !upload-pack= f|force m|multiple t|tags n
		j|jobs= prefetch p|prune P|prune-tags recurse-submodules? dry-run write-fetch-head k|keep update-head-ok
		progress depth= shallow-since= shallow-exclude= deepen= unshallow refetch update-shallow refmap=
		o|server-option= 4|ipv4 6|ipv6 negotiation-tip= negotiate-only filter= auto-maintenance auto-gc
		show-forced-updates write-commit-graph stdin`
)

// firstOperand adds a risk if the first operand of a subcommand is not among harmless.
func (r *parsedArgs) firstOperand(harmless ...string) {
	if len(r.operands) > 0 && !slices.Contains(harmless, r.operands[0]) {
		r.addRisk("its argument "+quoted(r.operands[0])+" does more than show something", r.operands[0])
	}
}

// harmlessKeys are the settings of git that start no programs, in lower case. A prefix ends with "*".
var harmlessKeys = []string{
	"user.name", "user.email", "author.*", "committer.*", "color.*", "advice.*", "column.*", "core.quotepath",
	"core.abbrev", "core.autocrlf", "core.eol", "core.filemode",
	"core.ignorecase", "core.safecrlf", "core.whitespace", "core.precomposeunicode", "diff.algorithm", "diff.context",
	"diff.noprefix", "diff.mnemonicprefix", "diff.renames", "diff.colormoved",
	"log.*", "status.*", "init.defaultbranch", "commit.verbose", "merge.conflictstyle", "pull.ff", "pull.rebase",
	"push.default", "branch.sort", "tag.sort", "i18n.*", "grep.linenumber",
}

// checkGit removes the risks of "git -c KEY=VALUE" if the key is harmless.
func checkGit(r *parsedArgs) {
	r.risks = slices.DeleteFunc(r.risks, func(d risk) bool {
		if len(d.words) == 0 || d.words[0] != "-c" {
			return false
		}
		key, _, _ := strings.Cut(strings.ToLower(d.words[len(d.words)-1]), "=")
		return slices.ContainsFunc(harmlessKeys, func(pattern string) bool {
			prefix, open := strings.CutSuffix(pattern, "*")
			return key == pattern || open && strings.HasPrefix(key, prefix)
		})
	})
}

// checkGitClean allows only dry runs.
func checkGitClean(r *parsedArgs) {
	if !r.has("n") {
		r.addRisk("it deletes all untracked files", "clean")
	}
}

// checkGitConfig allows reading settings.
func checkGitConfig(r *parsedArgs) {
	if !r.has("get", "get-all", "get-regexp", "list") {
		r.addRisk("it changes settings, which can name programs for git to start", "config")
	}
}
