function set_param(what, name, value)
global model
if isnumeric(what) && strcmp(name, 'Name')
    model.lines{what}.name = value;
end
end
