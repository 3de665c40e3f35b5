;; What a test lets Emacs do with `a.kern`, whose first line has an unknown name.
(package-initialize) ; as Emacs does by itself, unless it runs a script
(load-file "init.el")
(find-file "a.kern")
(run-hooks 'post-command-hook) ; eglot starts behind the first command

(defun wait-until (done)
  (with-timeout (60 (error "The server did not answer"))
    (while (not (funcall done)) (accept-process-output nil 0.1))))
(defun hover ()
  (let ((answer (jsonrpc-request (eglot--current-server-or-lose) :textDocument/hover
                                 (eglot--TextDocumentPositionParams))))
    (plist-get (plist-get answer :contents) :value)))
(defun show (key value) (princ (format "%s: %s\n" key value)))
(defun go-to (text)
  (eglot--signal-textDocument/didChange) ; eglot waits until the user is idle
  (goto-char (point-min))
  (search-forward text)
  (backward-char))

(wait-until (lambda () (and (eglot-managed-p) (flymake-diagnostics))))
(goto-char (flymake-diagnostic-beg (car (flymake-diagnostics))))
(show "fault" (flymake-diagnostic-text (car (flymake-diagnostics))))
(show "column" (current-column))
(eglot-code-actions (point) (point) "quickfix" t)
(eglot--signal-textDocument/didChange)
(wait-until (lambda () (null (flymake-diagnostics))))
(show "hover" (hover))
(eglot-format-buffer)
(go-to "* x")
(eglot-rename "source")
(go-to "= al")
(show "complete" (all-completions "al" (nth 2 (eglot-completion-at-point))))
(show "defined" (mapcar #'xref-item-summary (xref-backend-definitions 'eglot "alpha")))
(princ (buffer-string))
