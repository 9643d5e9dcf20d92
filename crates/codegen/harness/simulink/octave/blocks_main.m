% Runs generated blocks as Simulink would: they write to a program in C and read what it sends back. Then buses and library.
1;

function run_until(what, done, blocks)
for tick = 1:2000
    cellfun(@(block) block.step(), blocks);
    if done()
        return
    end
    pause(0.005);
end
error('%s did not come', what);
end

function block = started(name)
block = RunTimeBlock(0.02);
feval(name, block);
block.call('WriteRTW');
assert(block.Written.Topic(1), '/');
block.start();
end

function is = is_length(port)
is = ~isempty(regexp(port.name, '(Current|Received)Length$'));
end

% Inputs by a rule: numbers that need all bits, and lengths that are `share` of what there is room for.
function fill(block, ports, share)
classes = {'double', 'single', 'int8', 'uint8', 'int16', 'uint16', 'int32', 'uint32'};
for i = 1:numel(ports)
    n = ports(i).elements;
    rest = (1:n)' + i;
    if is_length(ports(i))
        room = capacity(ports, i, n);
        block.InputPort(i).Data = uint32(repmat(floor(room * share), n, 1));
    elseif ports(i).data_type_id == 8
        block.InputPort(i).Data = mod(rest, 2) == 1;
    elseif is_text(ports, i)
        block.InputPort(i).Data = uint8('a' + mod(rest, 26));
    elseif ports(i).data_type_id < 2
        block.InputPort(i).Data = cast(-rest / 7, classes{ports(i).data_type_id + 1});
    else
        block.InputPort(i).Data = cast(mod(rest * 2654435761, 2 ^ 32) - 2 ^ 31 * (mod(ports(i).data_type_id, 2) == 0), classes{ports(i).data_type_id + 1});
    end
end
end

% Text, or bytes that may as well be letters.
function is = is_text(ports, i)
is = ports(i).data_type_id == 3 && i < numel(ports) && strcmp(ports(i + 1).name, [ports(i).name '_SL_Info.CurrentLength']);
end

% What a length counts: elements of the first port of its name, of each message.
function room = capacity(ports, i, n)
name = regexprep(ports(i).name, '_SL_Info\.\w+$', '');
for k = 1:numel(ports)
    if strcmp(ports(k).name, name)
        % `last` is int64[], two elements each.
        room = ports(k).elements / n / (1 + strcmp(name, 'last'));
        return
    end
end
% A sequence of messages: its first number, or two for one of 64 bits.
room = 2;
end

function there_and_back(there, back, index, share)
ports = plant_mex('ports', index);
writer = started(there);
reader = started(back);
assert(reader.OutputPort(2).Data, Inf);
status = reader.NumOutputPorts - writer.NumInputPorts;
fill(writer, ports, share);
run_until(back, @() reader.OutputPort(1).Data, {writer, reader});
% What is beyond a length is zero now. It is sent again, and comes back as it is.
lengths_kept = true;
for i = 1:numel(ports)
    is_top = isempty(strfind(regexprep(ports(i).name, '_SL_Info.*', ''), '.'));
    if is_length(ports(i)) && is_top
        lengths_kept = lengths_kept && isequal(reader.OutputPort(status + i).Data, writer.InputPort(i).Data);
    elseif share == 1 && ~any(strcmp(regexprep(ports(i).name, '\..*', ''), {'many', 'some', 'texts'}))
        assert(reader.OutputPort(status + i).Data, writer.InputPort(i).Data);
    end
    writer.InputPort(i).Data = reader.OutputPort(status + i).Data;
end
assert(lengths_kept);
% Samples of before may be on their way.
same = @() reader.OutputPort(1).Data && all(arrayfun(@(i) isequal(reader.OutputPort(status + i).Data, writer.InputPort(i).Data), 1:numel(ports)));
run_until([back ' again'], same, {writer, reader});
age = reader.OutputPort(2).Data;
assert(age > 0 && age < 60 && reader.OutputPort(3).Data == 0);
assert(reader.OutputPort(4).Data == 0 && reader.OutputPort(5).Data == 0);
% With nothing new the message stays, and grows older.
writer.call('Terminate');
run_until('silence', @() ~reader.OutputPort(1).Data, {reader});
held = reader.OutputPort(status + 1).Data;
before = reader.OutputPort(2).Data;
reader.step();
assert(isequal(held, reader.OutputPort(status + 1).Data));
assert(reader.OutputPort(2).Data > before || reader.OutputPort(1).Data);
reader.call('Terminate');
printf('%s: %d ports, lengths at %d %%, %.3f ms old\n', there, numel(ports), round(100 * share), 1e3 * age);
end

function long_values()
reader = started('plant_reads_tool_long');
run_until('a long message', @() reader.OutputPort(1).Data, {reader});
names = {plant_mex('ports', 4).name};
at = @(name) reader.OutputPort(find(strcmp(names, name))).Data;
assert(at('values'), (0:127)' / 2);
assert(at('values_SL_Info.CurrentLength'), uint32(128));
assert(at('values_SL_Info.ReceivedLength'), uint32(300));
assert(at('text_SL_Info.CurrentLength'), uint32(127));
assert(at('many_SL_Info.CurrentLength'), uint32(16));
assert(at('many_SL_Info.ReceivedLength'), uint32(20));
assert(at('Truncated') >= 3 && mod(at('Truncated'), 3) == 0);
reader.call('Terminate');
printf('what is longer than its port is cut, and counted\n');
end

function refused(expected, varargin)
why = '';
try
    plant_mex(varargin{:});
catch problem
    why = problem.message;
end
assert(~isempty(strfind(why, expected)), [expected ' was expected, not: ' why]);
end

function refusals()
refused('the block was not started', 'step', 3);
refused('no block of this number', 'start', 99);
refused('the first argument is', 'sing', 1);
handle = plant_mex('start', 0);
refused('one array for each input port', 'step', handle, {});
ports = plant_mex('ports', 0);
inputs = arrayfun(@(port) zeros(port.elements, 1), ports, 'UniformOutput', false);
refused('is not of its port''s class and size', 'step', handle, inputs);
plant_mex('terminate', handle);
try
    block = RunTimeBlock(-2);
    plant_writes_rare_there(block);
    block.start();
    error('a wrong sample time was taken');
catch problem
    assert(~isempty(strfind(problem.message, 'seconds above 0')), problem.message);
end
% As many handles as there are, and again after they are given back.
handles = {};
try
    while numel(handles) < 1000
        handles{end + 1} = plant_mex('start', 0);
    end
catch problem
    assert(~isempty(strfind(problem.message, 'all handles are taken')), problem.message);
end
assert(numel(handles), 2 * 5 + 16);
cellfun(@(handle) plant_mex('terminate', handle), handles, 'UniformOutput', false, 'ErrorHandler', @(varargin) 0);
plant_mex('terminate', plant_mex('start', 0));
% What ports hold may be no message.
block = started('plant_writes_nested_there');
fill(block, plant_mex('ports', 0), 5);
try
    block.step();
    error('a length beyond the port was published');
catch problem
    assert(~isempty(strfind(problem.message, 'greater than its port')), problem.message);
end
block.call('Terminate');
printf('what cannot be is refused in a sentence\n');
end

function buses()
loop_buses();
rare = evalin('base', 'value_msgs_Rare');
names = {rare.Elements.Name};
assert(rare.Elements(find(strcmp(names, 'huge'))).Dimensions, 2);
assert(rare.Elements(find(strcmp(names, 'nested'))).DataType, 'Bus: value_msgs_Nested');
assert(rare.Elements(find(strcmp(names, 'texts'))).DataType, 'Bus: noctule_String_128');
for element = rare.Elements
    if strncmp(element.DataType, 'Bus: ', 5)
        assert(isstruct(evalin('base', element.DataType(6:end))));
    end
end
printf('buses: all that they refer to are there\n');
end

% Every port of every block has a line, and no input two.
function library()
global model
plant_library();
assert(model.saved && numel(model.masks) == 5);
ends = cellfun(@(line) line.to, model.lines, 'UniformOutput', false);
starts = cellfun(@(line) line.from, model.lines, 'UniformOutput', false);
assert(numel(unique(ends)), numel(ends));
for path = [ends starts]
    assert(isKey(model.blocks, regexprep(path{1}, '/\d+$', '')), ['a line without a block: ' path{1}]);
end
for key = keys(model.blocks)
    of = model.blocks(key{1});
    switch of.source
        case 'simulink/User-Defined Functions/Level-2 MATLAB S-Function'
            block = RunTimeBlock(0.01);
            feval(of.parameters{2}, block);
            assert(sum(strncmp(ends, [key{1} '/'], numel(key{1}) + 1)), block.NumInputPorts);
            assert(sum(strncmp(starts, [key{1} '/'], numel(key{1}) + 1)), block.NumOutputPorts);
        case 'simulink/Signal Routing/Bus Creator'
            assert(sum(strncmp(ends, [key{1} '/'], numel(key{1}) + 1)), str2double(of.parameters{2}));
            elements = evalin('base', of.parameters{4}(6:end)).Elements;
            into = model.lines(strncmp(ends, [key{1} '/'], numel(key{1}) + 1));
            assert(cellfun(@(line) line.name, into, 'UniformOutput', false), {elements.Name});
        case 'simulink/Signal Routing/Bus Selector'
            assert(sum(strncmp(starts, [key{1} '/'], numel(key{1}) + 1)), numel(strsplit(of.parameters{2}, ',')));
    end
end
browser = slblocks();
assert(browser.Browser(1).Library, model.name);
printf('library: %d blocks, %d lines, every port joined\n', model.blocks.Count, numel(model.lines));
end

there_and_back('plant_writes_nested_there', 'plant_reads_nested_back', 0, 1);
for share = [1 0.5 0]
    there_and_back('plant_writes_rare_there', 'plant_reads_rare_back', 1, share);
end
long_values();
refusals();
buses();
library();
printf('complete\n');
