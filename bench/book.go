package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"queuelab/bench/host"
	"queuelab/bench/learn"
	"queuelab/bench/learn/book"
	"queuelab/bench/learn/lessons"
	"queuelab/bench/museum"
)

// book runs all lessons and exhibits, and writes them as a site into a directory.
func (c learnCmd) book(e *env) error {
	if err := bookDir(c.Book); err != nil {
		return usage(e, err)
	}
	began := time.Now()
	facts := host.Facts(e.ctx, os.TempDir())
	show := func(r learn.Result) error { return learn.PrintLine(e.stderr, r, c.lang()) }
	exhibits := museum.All()
	all := lessons.All()
	results, err := c.try(e, append(all, museum.Lessons(exhibits)...), nil, show)
	if err != nil {
		return err
	}
	told, shown := results[:len(all)], results[len(all):]
	text := func(en, zh string) learn.Text { return learn.Text{EN: en, ZH: zh} }
	edition := book.Edition{
		Lessons: told, Museum: shown, Exhibits: exhibits, At: began,
		Conditions: []book.Condition{
			{Name: text("Machine", "机器"), Value: fmt.Sprintf("%s, %d cores, %.0f GB, kernel %s", facts.CPU, facts.Cores, float64(facts.MemoryBytes)/1e9, facts.Kernel)},
			{Name: text("Load before", "运行前负载"), Value: fmt.Sprintf("%.1f", facts.Load1)},
			{Name: text("Program", "程序"), Value: fmt.Sprintf("queuelab %s, %s, %s/%s", commit(), runtime.Version(), runtime.GOOS, runtime.GOARCH)},
			{Name: text("Where", "位置"), Value: text("brokers, clients and database on this one machine, over the loopback address", "中间件、客户端与数据库同在这一台机器，走回环地址").In(c.lang())},
		},
	}
	if err := book.Write(c.Book, edition); err != nil {
		return err
	}
	if err := book.CheckLinks(c.Book); err != nil {
		return err
	}
	fmt.Fprintf(e.stdout, "%s\n", filepath.Join(c.Book, "index.html"))
	return learned(e, results)
}

// bookDir refuses a directory that holds something else than a book.
func bookDir(dir string) error {
	files, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) || err == nil && len(files) == 0 {
		return nil
	}
	if err != nil {
		return fmt.Errorf("--book: %w", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "book.css")); err != nil {
		return fmt.Errorf("--book %s: the directory holds something else than a book; name an empty or a new one", dir)
	}
	return nil
}
