package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// mutant is one clause of the planner that is spoilt. It is named by what it is, and
// never by its line.
type mutant struct {
	id int
	// rule is the file that it is in, without .go, and pkg the directory below plan.
	pkg, rule string
	// function has the clause, and change tells what becomes of it.
	function, change string
	line             int
}

// name is what lists call it.
func (m *mutant) name() string { return m.function + ": " + m.change }

// file is where it is, below plan.
func (m *mutant) file() string { return strings.TrimPrefix(m.pkg+"/"+m.rule, "./") + ".go" }

// edit is text that is put into a file.
type edit struct {
	at   int
	text string
	// close edits end what others have begun: at one place they come first.
	close bool
	// width orders the edits at one place: what is wider begins earlier and ends later.
	width, order int
}

// source is one file whose clauses are mutated.
type source struct {
	path  string
	text  []byte
	fset  *token.FileSet
	pkg   string
	edits []edit
	all   *[]*mutant
	names map[string]int
	// function is the one that is gone through.
	function string
}

// mutate writes a file with all mutants of its clauses in it, and appends them.
func mutate(path, pkg string, all *[]*mutant, names map[string]int) ([]byte, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	s := &source{path: path, text: text, fset: token.NewFileSet(), pkg: pkg, all: all, names: names}
	file, err := parser.ParseFile(s.fset, path, text, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	before := len(*all)
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Body != nil {
			s.function = nameOf(file.Name.Name, f)
			s.walk(f)
		}
	}
	if len(*all) == before {
		return nil, nil
	}
	end := s.offset(file.Name.End())
	s.edits = append(s.edits, edit{at: end, text: "; import toggle \"" + toggle + "\""})
	return s.written(), nil
}

// nameOf is a function as people know it.
func nameOf(pkg string, f *ast.FuncDecl) string {
	if pkg != "plan" && f.Recv == nil {
		return pkg + "." + f.Name.Name
	}
	if f.Recv != nil {
		return receiver(f.Recv.List[0].Type) + "." + f.Name.Name
	}
	return f.Name.Name
}

func receiver(t ast.Expr) string {
	switch t := t.(type) {
	case *ast.StarExpr:
		return receiver(t.X)
	case *ast.Ident:
		return t.Name
	case *ast.IndexExpr:
		return receiver(t.X)
	}
	return "?"
}

// walk finds the clauses of a function. Loops keep their conditions: one without an end
// tells nothing.
func (s *source) walk(f *ast.FuncDecl) {
	kept := map[ast.Node]bool{}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ForStmt:
			if n.Cond != nil {
				kept[n.Cond] = true
			}
		case *ast.IfStmt:
			s.guard(n.Cond)
		case *ast.SwitchStmt:
			if n.Tag == nil {
				s.cases(n)
			}
		case *ast.FuncType, *ast.FuncLit:
		case *ast.BinaryExpr, *ast.UnaryExpr:
			if kept[n] {
				return false
			}
			s.clause(n.(ast.Expr))
		}
		return true
	})
	returns(f.Type, f.Body, s.guard)
}

// returns calls with what functions return that return one bool, in them and in the
// functions within.
func returns(t *ast.FuncType, body *ast.BlockStmt, with func(ast.Expr)) {
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			returns(n.Type, n.Body, with)
			return false
		case *ast.ReturnStmt:
			if isPredicate(t) && len(n.Results) == 1 {
				with(n.Results[0])
			}
		}
		return true
	})
}

func isPredicate(t *ast.FuncType) bool {
	if t.Results == nil || len(t.Results.List) != 1 || len(t.Results.List[0].Names) > 1 {
		return false
	}
	id, ok := t.Results.List[0].Type.(*ast.Ident)
	return ok && id.Name == "bool"
}

func (s *source) cases(n *ast.SwitchStmt) {
	for _, c := range n.Body.List {
		for _, e := range c.(*ast.CaseClause).List {
			s.guard(e)
		}
	}
}

// guard is a condition that never holds, and one that always does.
func (s *source) guard(e ast.Expr) {
	if isConstant(e) {
		return
	}
	s.wrap(e, "False", "never `"+s.show(e)+"`")
	s.wrap(e, "True", "always `"+s.show(e)+"`")
}

func isConstant(e ast.Expr) bool {
	id, ok := e.(*ast.Ident)
	return ok && (id.Name == "true" || id.Name == "false")
}

// clause is a part of a condition: one that is left out, turned round, or a little wider.
func (s *source) clause(e ast.Expr) {
	switch e := e.(type) {
	case *ast.UnaryExpr:
		if e.Op == token.NOT {
			s.wrap(e, "Not", "the opposite of `"+s.show(e)+"`")
		}
	case *ast.BinaryExpr:
		switch e.Op {
		case token.LAND:
			s.part(e.X, token.LAND, "True")
			s.part(e.Y, token.LAND, "True")
		case token.LOR:
			s.part(e.X, token.LOR, "False")
			s.part(e.Y, token.LOR, "False")
		case token.EQL, token.NEQ:
			s.wrap(e, "Not", "the opposite of `"+s.show(e)+"`")
		case token.LSS, token.LEQ, token.GTR, token.GEQ:
			s.edge(e)
		}
	}
}

// part leaves one operand out; the operands of an operand come for themselves.
func (s *source) part(e ast.Expr, op token.Token, how string) {
	if b, ok := e.(*ast.BinaryExpr); ok && b.Op == op {
		return
	}
	s.wrap(e, how, "without `"+s.show(e)+"`")
}

// edge includes the limit of a comparison where it is excluded, and the other way round.
func (s *source) edge(e *ast.BinaryExpr) {
	other := map[token.Token]string{token.LSS: "<=", token.LEQ: "<", token.GTR: ">=", token.GEQ: ">"}[e.Op]
	text := string(s.text[s.offset(e.X.Pos()):s.offset(e.X.End())]) + " " + other + " " + string(s.text[s.offset(e.Y.Pos()):s.offset(e.Y.End())])
	id := s.add(e, "`"+s.show(e)+"` with "+other)
	s.put(e, fmt.Sprintf("toggle.Either(%d, ", id), ", "+text+")", id)
}

// wrap puts a call around an expression.
func (s *source) wrap(e ast.Expr, call, change string) {
	id := s.add(e, change)
	s.put(e, fmt.Sprintf("toggle.%s(%d, ", call, id), ")", id)
}

func (s *source) put(e ast.Expr, open, end string, order int) {
	from, to := s.offset(e.Pos()), s.offset(e.End())
	s.edits = append(s.edits,
		edit{at: from, text: open, width: to - from, order: order},
		edit{at: to, text: end, close: true, width: to - from, order: order})
}

// add is a new mutant; where a function has the same change twice they are numbered.
func (s *source) add(e ast.Expr, change string) int {
	m := &mutant{
		id: len(*s.all), pkg: s.pkg, function: s.function, change: change,
		rule: strings.TrimSuffix(filepath.Base(s.path), ".go"), line: s.fset.Position(e.Pos()).Line,
	}
	s.names[m.name()]++
	if n := s.names[m.name()]; n > 1 {
		m.change += fmt.Sprintf(" (%d)", n)
	}
	*s.all = append(*s.all, m)
	return m.id
}

func (s *source) offset(p token.Pos) int { return s.fset.Position(p).Offset }

// show is an expression on one line.
func (s *source) show(e ast.Expr) string {
	var b strings.Builder
	if err := printer.Fprint(&b, s.fset, e); err != nil {
		return err.Error()
	}
	return strings.Join(strings.Fields(b.String()), " ")
}

// written is the file with its edits.
func (s *source) written() []byte {
	slices.SortStableFunc(s.edits, func(a, b edit) int {
		switch {
		case a.at != b.at:
			return a.at - b.at
		case a.close != b.close:
			if a.close {
				return -1
			}
			return 1
		case a.width != b.width && a.close:
			return a.width - b.width
		case a.width != b.width:
			return b.width - a.width
		case a.close:
			return b.order - a.order
		default:
			return a.order - b.order
		}
	})
	var out strings.Builder
	at := 0
	for _, e := range s.edits {
		out.Write(s.text[at:e.at])
		out.WriteString(e.text)
		at = e.at
	}
	out.Write(s.text[at:])
	return []byte(out.String())
}
