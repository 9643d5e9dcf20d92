function mask = create(system)
global model
model.masks{end + 1} = system;
mask = struct('addParameter', @(varargin) assert(varargin{4}, 'SampleTime'));
end
