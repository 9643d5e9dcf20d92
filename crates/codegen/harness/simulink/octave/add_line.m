function line = add_line(system, from, to)
global model
model.lines{end + 1} = struct('from', [system '/' from], 'to', [system '/' to], 'name', '');
line = numel(model.lines);
end
